//! Merging of words of any length in linear time.
//!
//! A sequence of tokens is what merging gives if and only if every two neighbours are what merging their own bytes
//! gives (true when no merge joins a token that is made later). So a long word is merged in blocks, and where two
//! blocks meet, a window that grows until both its edges are right is merged again.

use super::byte_bpe::ByteBpe;
use super::merge::MergeScratch;

/// Bytes of a block: small enough for its symbols to stay in the processor's first caches.
const BLOCK: usize = 1 << 11;

/// Appends the ids of `word` to `out`.
pub(crate) fn merge(bpe: &ByteBpe, word: &[u8], scratch: &mut MergeScratch, out: &mut Vec<u32>) {
    if word.len() <= 2 * BLOCK || !bpe.merges.is_ordered() {
        bpe.merges.merge(word, scratch, out);
        return;
    }
    let first = out.len();
    let mut block = Vec::new();
    for bytes in word.chunks(BLOCK) {
        block.clear();
        bpe.merges.merge(bytes, scratch, &mut block);
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
