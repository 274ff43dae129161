//! What this machine allows at most, measured: the yardstick for every step.

use crate::error::{Error, Result};
use crate::kernels::{Isa, Kernels, MULTIPLIES_PER_ROUND};
use crate::pages::Pages;
use crate::threads::share;
use std::hint::black_box;
use std::time::Instant;

/// Upper bounds of the machine, for all threads together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Bytes read from memory in a second.
    pub read_bytes: f64,
    /// 16-bit multiplications with their additions in a second.
    pub multiply_adds: f64,
}

impl Limits {
    /// Measures for about a second: the best of several rounds.
    ///
    /// # Errors
    /// [`Error::Shape`] when there is no memory for it, or no kernels.
    pub fn measure(isa: Isa, num_threads: usize) -> Result<Self> {
        /// Far more than any cache holds, and enough rounds to meet a quiet moment.
        const BYTES: usize = 256 << 20;
        const ROUNDS: usize = 9;
        const MULTIPLY_ROUNDS: u32 = 2_000_000;
        let kernels = isa.kernels()?;
        let kernels: &dyn Kernels = &*kernels;
        let Some(mut pages) = Pages::zeroed(BYTES) else {
            return Err(Error::shape(
                "memory for the measurement",
                BYTES,
                "available",
            ));
        };
        pages.bytes_mut().fill(1);
        let words: &[[u32; 8]] = bytemuck::cast_slice(pages.bytes());
        let read =
            |thread: usize| kernels.read_all(&words[share(words.len(), num_threads, thread)]);
        let multiply = |_| kernels.multiply_only(MULTIPLY_ROUNDS);
        let multiplies = u64::from(MULTIPLY_ROUNDS) * MULTIPLIES_PER_ROUND;
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
        Ok(Self {
            read_bytes: BYTES as f64 / shortest(ROUNDS, num_threads, read),
            multiply_adds: (multiplies * num_threads as u64) as f64
                / shortest(ROUNDS, num_threads, multiply),
        })
    }
}

/// Seconds of the fastest of some rounds, each on all threads at the same time.
fn shortest(rounds: usize, num_threads: usize, work: impl Fn(usize) -> i32 + Sync) -> f64 {
    let round = |_| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            let work = &work;
            for thread in 1..num_threads {
                scope.spawn(move || black_box(work(thread)));
            }
            black_box(work(0));
        });
        start.elapsed().as_secs_f64()
    };
    (0..rounds).map(round).fold(f64::INFINITY, f64::min)
}
