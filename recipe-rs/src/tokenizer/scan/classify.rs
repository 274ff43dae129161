//! Classes of 64 bytes at once, as bit masks.

/// One bit a byte for each class of ASCII characters; a byte in none of them is a control character or no ASCII.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Masks {
    pub(crate) letter: u64,
    pub(crate) digit: u64,
    pub(crate) punct: u64,
    pub(crate) space: u64,
    /// Tab, vertical tab and form feed.
    pub(crate) blank: u64,
    pub(crate) newline: u64,
}

/// A way to compute the masks of 64 bytes.
pub(crate) trait Classify {
    /// The masks of `block`.
    fn masks(&self, block: &[u8; 64]) -> Masks;
}

/// By table.
#[derive(Debug)]
pub(crate) struct Portable;

impl Classify for Portable {
    fn masks(&self, block: &[u8; 64]) -> Masks {
        let mut masks = Masks::default();
        for (at, &byte) in block.iter().enumerate() {
            let class = CLASS_BITS[usize::from(byte)];
            let bit = |index: u8| u64::from(class >> index & 1) << at;
            masks.letter |= bit(0);
            masks.digit |= bit(1);
            masks.punct |= bit(2);
            masks.space |= bit(3);
            masks.blank |= bit(4);
            masks.newline |= bit(5);
        }
        masks
    }
}

static CLASS_BITS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => 1,
            b'0'..=b'9' => 2,
            0x21..=0x7E => 4,
            b' ' => 8,
            b'\t' | 0x0B | 0x0C => 16,
            b'\n' | b'\r' => 32,
            _ => 0,
        };
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::super::simd::best_masks as best;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn best_equals_portable(block in proptest::collection::vec(any::<u8>(), 64)) {
            let block: [u8; 64] = block.try_into().unwrap();
            prop_assert_eq!(best(&block), Portable.masks(&block));
        }
    }

    #[test]
    fn every_byte_at_every_place() {
        for byte in 0..=255 {
            for at in 0..64 {
                let mut block = [b'~'; 64];
                block[at] = byte;
                assert_eq!(best(&block), Portable.masks(&block), "{byte} at {at}");
            }
        }
    }
}
