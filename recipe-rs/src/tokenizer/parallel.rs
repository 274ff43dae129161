//! One long text on several threads.

use std::num::NonZeroUsize;
use std::thread;

use super::encoder::PlainEncoder;
use crate::Result;

/// Texts below this size are not worth a thread.
const MIN_BYTES_PER_THREAD: usize = 32 << 10;

/// How far a chunk may grow beyond its size to find a safe cut.
const MAX_CUT_DISTANCE: usize = 64 << 10;

/// Number of threads to use when the caller names none: the processors this process may use.
#[must_use]
pub(crate) fn default_num_threads() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Appends the ids of `text` to `out`, on up to `num_threads` threads; the ids do not depend on their number.
///
/// # Errors
/// What the encoder reports.
pub(crate) fn encode_into(
    encoder: &dyn PlainEncoder,
    text: &str,
    at_start: bool,
    num_threads: NonZeroUsize,
    out: &mut Vec<u32>,
) -> Result<()> {
    let num_chunks = num_threads.get().min(text.len() / MIN_BYTES_PER_THREAD);
    let chunks = if num_chunks > 1 {
        split(encoder, text, num_chunks)
    } else {
        vec![text]
    };
    let [first, rest @ ..] = chunks.as_slice() else {
        return Ok(());
    };
    thread::scope(|scope| {
        let workers: Vec<_> = rest
            .iter()
            .map(|chunk| {
                scope.spawn(|| {
                    let mut ids = Vec::with_capacity(chunk.len() / 3);
                    encoder.encode_into(chunk, false, &mut ids).map(|()| ids)
                })
            })
            .collect();
        encoder.encode_into(first, at_start, out)?;
        for worker in workers {
            match worker.join() {
                Ok(ids) => out.extend_from_slice(&ids?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    })
}

/// Cuts `text` into about `num_chunks` parts of similar size at safe positions.
fn split<'a>(encoder: &dyn PlainEncoder, text: &'a str, num_chunks: usize) -> Vec<&'a str> {
    let mut chunks = Vec::with_capacity(num_chunks);
    let mut start = 0;
    for index in 1..num_chunks {
        let target = (text.len() * index / num_chunks).max(start + 1);
        if let Some(cut) = encoder.safe_cut(text, target, target + MAX_CUT_DISTANCE) {
            chunks.push(&text[start..cut]);
            start = cut;
        }
    }
    chunks.push(&text[start..]);
    chunks
}
