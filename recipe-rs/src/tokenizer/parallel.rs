//! One long text on several threads.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::encoder::PlainEncoder;
use crate::Result;

/// Texts below this size are not worth a thread: starting one takes as long as encoding a third of it.
const MIN_BYTES_PER_THREAD: usize = 64 << 10;

/// About what a thread takes at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// How far a chunk may grow beyond its size to find a safe cut.
const MAX_CUT_DISTANCE: usize = 64 << 10;

/// Number of threads to use when the caller names none: the processors this process may use.
#[must_use]
pub(crate) fn default_num_threads() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Whether `text` is encoded on one thread in any case.
#[must_use]
pub(crate) fn is_short(text: &str) -> bool {
    text.len() < 2 * MIN_BYTES_PER_THREAD
}

/// Appends the ids of `text` to `out`, on up to `num_threads` threads; the ids do not depend on their number.
///
/// There are more chunks than threads, and a thread takes the next one when it is done with another: one that the system
/// stops for a while delays the others by one chunk at most.
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
    let num_threads = num_threads.get().min(text.len() / MIN_BYTES_PER_THREAD);
    if num_threads <= 1 {
        return encoder.encode_into(text, at_start, out);
    }
    let chunks = split(encoder, text, (text.len() / CHUNK_BYTES).max(num_threads));
    let next = AtomicUsize::new(1);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = chunks.get(index) else {
                return Ok(done);
            };
            let mut ids = Vec::with_capacity(chunk.len() / 3);
            encoder.encode_into(chunk, false, &mut ids)?;
            done.push((index, ids));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (1..num_threads).map(|_| scope.spawn(work)).collect();
        let mut parts = Vec::with_capacity(chunks.len());
        if let Some(first) = chunks.first() {
            encoder.encode_into(first, at_start, out)?;
        }
        parts.extend(work()?);
        for worker in workers {
            match worker.join() {
                Ok(done) => parts.extend(done?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        parts.sort_unstable_by_key(|part| part.0);
        for (_, ids) in parts {
            out.extend_from_slice(&ids);
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
