//! One step: its data, and the walk of each thread through its phases.

#![expect(unsafe_code, reason = "phases write disjoint parts of shared buffers")]

use super::workspace::Workspace;
use super::{KvCache, Phase, Profile, StepPlan, Weights};
use crate::kernels::{Best, Kernels};
use crate::sampling::Sampled;
use crate::threads::{Broken, Job, WorkList};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Where full rows of logits go.
pub(crate) struct LogitsOut {
    start: *mut f32,
    vocab_size: usize,
    num_rows: usize,
}

// SAFETY: threads write disjoint parts; `Runner::step` holds the memory until no thread can write.
unsafe impl Send for LogitsOut {}
// SAFETY: as above.
unsafe impl Sync for LogitsOut {}

impl LogitsOut {
    /// The first rows of logits go to `out`, as many as fit.
    ///
    /// # Safety
    /// `out` outlives every use of the result by other threads.
    pub(crate) unsafe fn new(out: &mut [f32], vocab_size: usize) -> Self {
        Self {
            start: out.as_mut_ptr(),
            vocab_size,
            num_rows: out.len() / vocab_size,
        }
    }

    pub(crate) fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Copies some logits of a row.
    ///
    /// # Safety
    /// Nobody else touches these logits at the same time.
    pub(crate) unsafe fn store(&self, row: usize, first: usize, logits: &[f32]) {
        assert!(
            row < self.num_rows && first + logits.len() <= self.vocab_size,
            "within the rows of logits"
        );
        // SAFETY: in bounds as just checked; the constructor's caller keeps the memory alive, and
        // this caller excludes races.
        unsafe {
            let target = self.start.add(row * self.vocab_size + first);
            std::ptr::copy_nonoverlapping(logits.as_ptr(), target, logits.len());
        }
    }
}

/// Everything that threads need for one step.
pub(crate) struct Step {
    pub(crate) weights: Arc<Weights>,
    pub(crate) cache: Arc<KvCache>,
    pub(crate) kernels: Arc<dyn Kernels>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) profile: Arc<Profile>,
    pub(crate) plan: StepPlan,
    pub(crate) logits: LogitsOut,
    pub(crate) sampled: Mutex<Vec<Option<Sampled>>>,
    pub(crate) num_threads: usize,
    pub(crate) work: WorkList,
}

/// Phases of a step at most.
pub(crate) fn max_phases(num_layers: usize, num_logit_rows: usize) -> usize {
    const EMBEDDINGS: usize = 1;
    const PER_LAYER: usize = 8;
    /// Preparation, logits, samples.
    const PER_HEAD_PASS: usize = 3;
    EMBEDDINGS + PER_LAYER * num_layers + PER_HEAD_PASS * num_logit_rows.div_ceil(HEAD_ROWS)
}

/// Rows of logits that are computed before samples are taken from them: a bound on their memory.
pub(crate) const HEAD_ROWS: usize = 64;

/// The passes over the output head, as ranges of logit rows.
pub(crate) fn head_passes(num_logit_rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..num_logit_rows)
        .step_by(HEAD_ROWS)
        .map(move |first| first..(first + HEAD_ROWS).min(num_logit_rows))
}

/// Items of the output head.
pub(crate) fn num_head_items(num_groups: usize, num_threads: usize) -> usize {
    num_groups.min(16 * num_threads)
}

/// One thread on its way through a step.
pub(super) struct Walk<'a> {
    pub(super) step: &'a Step,
    pub(super) thread: usize,
    pub(super) next_phase: usize,
}

impl Job for Step {
    fn run(&self, thread: usize) {
        // A broken step is reported by the runner, which looks at the work list.
        let _ = Walk {
            step: self,
            thread,
            next_phase: 0,
        }
        .run();
    }
}

impl Walk<'_> {
    fn run(mut self) -> Result<(), Broken> {
        let step = self.step;
        self.embed()?;
        for (index, layer) in step.weights.layers.iter().enumerate() {
            self.query_key_value(layer, index)?;
            self.attention(index)?;
            self.output(layer)?;
            self.gate_up(layer)?;
            self.down(layer)?;
        }
        for rows in head_passes(step.plan.logit_rows.len()) {
            self.head(&rows)?;
            self.sample(&rows)?;
        }
        Ok(())
    }

    /// Does the next phase's items together with the other threads.
    pub(super) fn phase(
        &mut self,
        kind: Phase,
        num_items: usize,
        item: impl FnMut(usize),
    ) -> Result<(), Broken> {
        let Step { work, profile, .. } = self.step;
        let phase = self.next_phase;
        self.next_phase += 1;
        let start = if self.thread == 0 {
            profile.now()
        } else {
            None
        };
        work.work(phase, self.thread, num_items, item);
        let worked = start.and_then(|_| profile.now());
        work.wait(phase, num_items)?;
        profile.record(kind, start, worked);
        Ok(())
    }
}

impl Step {
    /// Keeps the outcome of a sample.
    pub(super) fn keep(&self, index: usize, outcome: Option<Sampled>) {
        let mut sampled = self.sampled.lock().unwrap_or_else(PoisonError::into_inner);
        sampled[index] = outcome;
    }

    /// Outcomes of the samples, once the step is done; empty afterwards.
    pub(crate) fn take_sampled(&self) -> Vec<Option<Sampled>> {
        std::mem::take(&mut self.sampled.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Best logit of each logit row, once the step is done.
    pub(crate) fn best(&self) -> Vec<Best> {
        let num_rows = self.plan.logit_rows.len();
        let num_items = num_head_items(self.weights.head().num_groups(), self.num_threads);
        // SAFETY: the step is done, so that nobody writes any more.
        let slots = unsafe { self.workspace.best.get(0..num_items * num_rows) };
        (0..num_rows)
            .map(|row| {
                let items = slots
                    .iter()
                    .skip(row)
                    .step_by(num_rows)
                    .map(|slot| Best::from(*slot));
                items.fold(Best::NONE, Best::join)
            })
            .collect()
    }
}
