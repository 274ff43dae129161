//! Merging of words of any length in linear time.
//!
//! A sequence of tokens is what merging gives if and only if every two neighbours are what merging their own bytes
//! gives (true when no merge joins a token that is made later). So a long word is merged in blocks, and where two
//! blocks meet, a window that grows until both its edges are right is merged again.

use super::byte_bpe::ByteBpe;
use super::merge::MergeScratch;

/// Bytes of a block: small enough for its symbols to stay in the processor's first caches.
const BLOCK: usize = 1 << 9;

/// Appends the ids of `word` to `out`.
pub(crate) fn merge(bpe: &ByteBpe, word: &[u8], scratch: &mut MergeScratch, out: &mut Vec<u32>) {
    if word.len() <= 2 * BLOCK || !bpe.merges.is_ordered() {
        bpe.merges.merge(word, scratch, out);
        return;
    }
    let first = out.len();
    let mut block = Vec::new();
    let mut last: &[u8] = &[];
    for bytes in word.chunks(BLOCK) {
        // Most words of this length are one character or a pattern over and over.
        if bytes != last {
            block.clear();
            bpe.merges.merge(bytes, scratch, &mut block);
            last = bytes;
        }
        join(bpe, scratch, out, first, &block);
    }
}

/// Appends `block` to `out[first..]` and repairs the seam between them.
fn join(
    bpe: &ByteBpe,
    scratch: &mut MergeScratch,
    out: &mut Vec<u32>,
    first: usize,
    block: &[u32],
) {
    let (Some(&left), Some(&right)) = (out[first..].last(), block.first()) else {
        out.extend_from_slice(block);
        return;
    };
    if bpe.merges.is_stable(left, right) {
        out.extend_from_slice(block);
        return;
    }
    let mut window = 2;
    let (mut bytes, mut merged) = (Vec::new(), Vec::new());
    loop {
        let start = out.len() - window.min(out.len() - first);
        let end = window.min(block.len());
        bytes.clear();
        for &id in out[start..].iter().chain(&block[..end]) {
            bytes.extend_from_slice(bpe.vocabulary.bytes(id));
        }
        merged.clear();
        bpe.merges.merge(&bytes, scratch, &mut merged);
        let is_left_right = match (out[first..start].last(), merged.first()) {
            (Some(&left), Some(&right)) => bpe.merges.is_stable(left, right),
            _ => true,
        };
        let is_right_right = match (merged.last(), block.get(end)) {
            (Some(&left), Some(&right)) => bpe.merges.is_stable(left, right),
            _ => true,
        };
        if is_left_right && is_right_right {
            out.truncate(start);
            out.extend_from_slice(&merged);
            out.extend_from_slice(&block[end..]);
            return;
        }
        window *= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::file::TokenizerFile;
    use super::super::vocabulary::Vocabulary;
    use super::*;

    fn small() -> ByteBpe {
        let file = TokenizerFile::parse(include_str!("../../tests/data/bpe_small.json")).unwrap();
        let vocabulary = Arc::new(Vocabulary::from_file(&file, true).unwrap());
        ByteBpe::from_file(&file, &vocabulary).unwrap().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn long_words_merge_as_a_whole(
            letters in proptest::sample::select(vec!["a", "ab", "the lazy", "=/-", "\u{9053}\u{540d}\u{975e}"]),
            picks in proptest::collection::vec(any::<prop::sample::Index>(), 6000..9000),
        ) {
            let bpe = small();
            let word: Vec<u8> = picks.iter().map(|pick| *pick.get(letters.as_bytes())).collect();
            let mut scratch = MergeScratch::default();
            let (mut whole, mut joined) = (Vec::new(), vec![7]);
            bpe.merges.merge(&word, &mut scratch, &mut whole);
            merge(&bpe, &word, &mut scratch, &mut joined);
            prop_assert_eq!(&joined[1..], &whole);
        }
    }

    #[test]
    fn stability_is_what_merging_says() {
        let bpe = small();
        let mut scratch = MergeScratch::default();
        let mut merged = Vec::new();
        let ids: Vec<u32> = (0..bpe.vocabulary.len() as u32 - 4).collect();
        for &left in &ids {
            for &right in &ids {
                let bytes = [bpe.vocabulary.bytes(left), bpe.vocabulary.bytes(right)].concat();
                merged.clear();
                bpe.merges.merge(&bytes, &mut scratch, &mut merged);
                assert_eq!(
                    bpe.merges.is_stable(left, right),
                    merged == [left, right],
                    "{left} {right}"
                );
            }
        }
    }
}
