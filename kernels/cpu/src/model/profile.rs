//! Where the time of steps goes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A kind of phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Embeddings and rotary angles.
    Embed,
    /// Norms and quantisation, where threads share them.
    Prepare,
    /// Query, key and value projections, rotation, storing.
    QueryKeyValue,
    /// Attention.
    Attention,
    /// Output projection of attention.
    Output,
    /// Gate and up projections.
    GateUp,
    /// Down projection.
    Down,
    /// Output head.
    Head,
    /// Choice of tokens.
    Sample,
}

impl Phase {
    /// All kinds, in the order of a step.
    pub const ALL: [Self; 9] = [
        Self::Embed,
        Self::Prepare,
        Self::QueryKeyValue,
        Self::Attention,
        Self::Output,
        Self::GateUp,
        Self::Down,
        Self::Head,
        Self::Sample,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Embed => "embed",
            Self::Prepare => "prepare",
            Self::QueryKeyValue => "qkv",
            Self::Attention => "attention",
            Self::Output => "output",
            Self::GateUp => "gate_up",
            Self::Down => "down",
            Self::Head => "head",
            Self::Sample => "sample",
        }
    }
}

/// Time of the caller's thread in each kind of phase, while switched on.
#[derive(Debug, Default)]
pub struct Profile {
    is_on: AtomicBool,
    work_nanoseconds: [AtomicU64; Phase::ALL.len()],
    wait_nanoseconds: [AtomicU64; Phase::ALL.len()],
}

impl Profile {
    /// Starts or stops counting; starting begins at zero.
    pub fn switch(&self, is_on: bool) {
        if is_on {
            self.work_nanoseconds
                .iter()
                .chain(&self.wait_nanoseconds)
                .for_each(|time| time.store(0, Ordering::Relaxed));
        }
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Working and waiting time of a kind of phase.
    #[must_use]
    pub fn times(&self, phase: Phase) -> (Duration, Duration) {
        let read = |times: &[AtomicU64]| {
            Duration::from_nanos(times[phase as usize].load(Ordering::Relaxed))
        };
        (read(&self.work_nanoseconds), read(&self.wait_nanoseconds))
    }

    /// The present moment, while switched on.
    pub(crate) fn now(&self) -> Option<Instant> {
        self.is_on.load(Ordering::Relaxed).then(Instant::now)
    }

    pub(crate) fn record(&self, phase: Phase, start: Option<Instant>, worked: Option<Instant>) {
        if let (Some(start), Some(worked)) = (start, worked) {
            let add = |times: &[AtomicU64], time: Duration| {
                times[phase as usize].fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
            };
            add(&self.work_nanoseconds, worked - start);
            add(&self.wait_nanoseconds, worked.elapsed());
        }
    }
}
