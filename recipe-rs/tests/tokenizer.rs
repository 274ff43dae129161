//! The tokenizer against vectors of the reference, and its invariants.

#![allow(
    clippy::unwrap_used,
    clippy::single_range_in_vec_init,
    clippy::reversed_empty_ranges,
    reason = "tests fail by panic, and some ranges are wrong on purpose"
)]

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use proptest::prelude::*;
use recipe_rs::{Error, GrowingPrompt, Tokenizer};
use serde_json::Value;

static SMALL: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("data/bpe_small.json")).unwrap());
static VECTORS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("data/tokenizer_vectors.json")).unwrap());
static KINDS: LazyLock<Vec<(String, Tokenizer)>> = LazyLock::new(|| {
    VECTORS["pre_tokenizers"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, kind)| {
            let mut file = SMALL.clone();
            file["normalizer"] = kind[0].clone();
            file["pre_tokenizer"] = kind[1].clone();
            (
                name.clone(),
                Tokenizer::from_json(&file.to_string()).unwrap(),
            )
        })
        .collect()
});

fn threads(count: usize) -> Option<NonZeroUsize> {
    NonZeroUsize::new(count)
}

#[test]
fn ids_are_those_of_the_reference() {
    for (name, tokenizer) in KINDS.iter() {
        let texts = VECTORS["texts"].as_array().unwrap();
        let expected = VECTORS["ids"][name].as_array().unwrap();
        for (text, expected) in texts.iter().zip(expected) {
            let ids = tokenizer.encode(text.as_str().unwrap()).unwrap();
            assert_eq!(serde_json::json!(ids), *expected, "{name} {text}");
        }
    }
}

#[test]
fn special_spellings_are_plain_text_outside_the_given_ranges() {
    let tokenizer = &KINDS[0].1;
    let text = "<think>a</think>";
    let think = tokenizer.token_to_id("<think>").unwrap();
    let plain = tokenizer.encode_plain(text, None).unwrap();
    assert!(!plain.contains(&think));
    assert_eq!(tokenizer.decode(&plain, false).unwrap(), text);
    let ids = tokenizer
        .encode_ranges(text, std::slice::from_ref(&(0..7)), None)
        .unwrap();
    assert_eq!(ids[0], think);
    assert_eq!(ids[1..], tokenizer.encode_plain("a</think>", None).unwrap());
    assert_eq!(tokenizer.encode(text).unwrap()[0], think);
}

#[test]
fn wrong_ranges_are_refused() {
    let tokenizer = &KINDS[0].1;
    for (text, ranges) in [
        ("<think>", vec![0..6]),
        ("<think>", vec![0..8]),
        ("<think>", vec![1..0]),
        ("<think><think>", vec![7..14, 0..7]),
        ("<think>", vec![0..7, 0..7]),
        ("\u{e9}<think>", vec![1..9]),
        ("<think>", vec![0..0]),
    ] {
        let error = tokenizer.encode_ranges(text, &ranges, None).unwrap_err();
        assert!(matches!(error, Error::Tokenizer { .. }), "{error:?}");
    }
}

#[test]
fn unknown_ids_stand_for_nothing() {
    let tokenizer = &KINDS[0].1;
    let past_end = tokenizer.vocab_size() as u32;
    let known = tokenizer.decode(&[0], false).unwrap();
    assert_eq!(
        tokenizer.decode(&[past_end, 0, u32::MAX], false).unwrap(),
        known
    );
    assert!(tokenizer.token_bytes(past_end).is_err());
    assert_eq!(tokenizer.id_to_token(u32::MAX), None);
}

#[test]
fn unsupported_files_are_refused() {
    for json in [
        "",
        "[1]",
        "{}",
        r#"{"model": {"type": "Mystery", "vocab": {}}}"#,
    ] {
        assert!(
            matches!(Tokenizer::from_json(json), Err(Error::Tokenizer { .. })),
            "{json}"
        );
    }
    assert!(Tokenizer::from_file("no such file").is_err());
}

/// Text over all characters, weighted towards those that the pre-tokenizers treat specially.
fn text() -> impl Strategy<Value = String> {
    let special = proptest::sample::select(
        " \t\n\r'sSlLtrevm\u{17f}09.,<>|/!\0\u{e9}\u{301}\u{3000}\u{85}\u{4e00}\u{9fa5}\u{3042}\u{30a2}\u{30fc}\u{3099}\u{309b}\u{3040}\u{30fb}\u{2460}\u{20c1}"
            .chars()
            .collect::<Vec<_>>(),
    );
    proptest::collection::vec(prop_oneof![4 => special, 1 => any::<char>()], 0..80)
        .prop_map(|characters| characters.into_iter().collect())
}

proptest! {
    #[test]
    fn growing_gives_the_ids_of_the_whole(pieces in proptest::collection::vec((text(), any::<bool>()), 1..6)) {
        for (name, tokenizer) in KINDS.iter() {
            let mut prompt = GrowingPrompt::new(tokenizer.clone());
            let (mut whole, mut ranges) = (String::new(), Vec::new());
            for (text, has_special) in &pieces {
                let before = prompt.token_ids().to_vec();
                let mut piece = text.clone();
                let mut piece_ranges = Vec::new();
                if *has_special {
                    piece.push_str("<think>");
                    piece_ranges.push(text.len()..piece.len());
                    ranges.push(whole.len() + text.len()..whole.len() + piece.len());
                }
                whole.push_str(&piece);
                let stayed = prompt.append(&piece, &piece_ranges).unwrap();
                prop_assert_eq!(&prompt.token_ids()[..stayed], &before[..stayed]);
                let expected = tokenizer.encode_ranges(&whole, &ranges, threads(1)).unwrap();
                prop_assert_eq!(prompt.token_ids(), &expected, "{}", name);
            }
        }
    }

    #[test]
    fn decoding_gives_the_text_back(text in text()) {
        for (name, tokenizer) in KINDS.iter().filter(|(name, _)| name != "qwen2") {
            let ids = tokenizer.encode_plain(&text, None).unwrap();
            prop_assert_eq!(&tokenizer.decode(&ids, false).unwrap(), &text, "{}", name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn threads_do_not_change_the_ids(text in text(), repeats in 1200_usize..3000) {
        let text = text.repeat(repeats);
        for (name, tokenizer) in KINDS.iter() {
            let serial = tokenizer.encode_plain(&text, threads(1)).unwrap();
            for count in [2, 3, 7] {
                prop_assert!(serial == tokenizer.encode_plain(&text, threads(count)).unwrap(), "{name} {count}");
            }
        }
    }
}
