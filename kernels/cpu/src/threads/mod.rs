//! Threads that end a phase when its work is done, not when everybody has arrived.

mod pool;
mod work;

pub(crate) use pool::{Job, Pool};
pub(crate) use work::{Broken, WorkList};

/// Spins for a while, then offers the processor to others.
pub(crate) struct Patience {
    turns: u32,
}

/// Turns of spinning before a waiting thread yields: about 10 us.
const SPIN_TURNS: u32 = 2000;

impl Patience {
    pub(crate) const fn new() -> Self {
        Self { turns: 0 }
    }

    /// Waits a little.
    pub(crate) fn wait(&mut self) {
        if self.turns < SPIN_TURNS {
            self.turns += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }

    /// Whether spinning time is over.
    pub(crate) const fn is_exhausted(&self) -> bool {
        self.turns >= SPIN_TURNS
    }
}

/// Half-open part `part` of `parts` nearly equal parts of `0..total`.
pub(crate) const fn share(total: usize, parts: usize, part: usize) -> std::ops::Range<usize> {
    total * part / parts..total * (part + 1) / parts
}
