//! Reasoning that a client carries from one Responses request to the next as opaque text.
//!
//! The protocol calls the field encrypted. Here it is only packed: who sends the text back could have sent any
//! reasoning in the open as well.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Tells our text from that of other servers.
const PREFIX: &str = "recipe1.";

/// Packs reasoning into one word.
pub(crate) fn pack(reasoning: &str) -> String {
    format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(reasoning))
}

/// The reasoning in a text that [`pack`] made; `None` for any other.
pub(crate) fn unpack(packed: &str) -> Option<String> {
    let data = URL_SAFE_NO_PAD.decode(packed.strip_prefix(PREFIX)?).ok()?;
    String::from_utf8(data).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packed_reasoning_comes_back(reasoning in any::<String>()) {
            let packed = pack(&reasoning);
            prop_assert!(packed.is_ascii() && !packed.contains(char::is_whitespace));
            prop_assert_eq!(unpack(&packed), Some(reasoning));
        }

        #[test]
        fn nothing_else_is_taken_for_it(text in any::<String>()) {
            prop_assert_eq!(unpack(&text), None);
            prop_assert_eq!(unpack(&format!("{PREFIX}*{text}")), None);
        }
    }
}
