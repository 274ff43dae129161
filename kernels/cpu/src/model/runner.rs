//! A model with its cache and threads.

#![expect(
    unsafe_code,
    reason = "hands the caller's memory to threads for the length of a step"
)]

use super::step::{LogitsOut, Step, max_phases, num_head_items};
use super::workspace::{Demand, Workspace};
use super::{KvCache, KvStorage, Profile, StepInput, StepOutput, StepPlan, Weights};
use crate::activation::Activations;
use crate::error::{Error, Result};
use crate::kernels::{Isa, Kernels};
use crate::threads::{Job, Pool, WorkList};
use std::sync::{Arc, Mutex};

/// How a [`Runner`] is made.
#[derive(Debug, Clone, Copy)]
pub struct RunnerOptions {
    /// KV blocks.
    pub num_blocks: usize,
    /// Positions in a block: a power of two from 16 to 256.
    pub block_size: usize,
    /// Threads that compute, the caller's among them; `None` takes what the process may use.
    pub num_threads: Option<usize>,
    /// Instruction set.
    pub isa: Isa,
    /// Form of the activations.
    pub activations: Activations,
    /// Form of keys and values.
    pub kv_storage: KvStorage,
}

/// Computes steps of one model.
pub struct Runner {
    weights: Arc<Weights>,
    cache: Arc<KvCache>,
    kernels: Arc<dyn Kernels>,
    pool: Pool,
    workspace: Option<Arc<Workspace>>,
    profile: Arc<Profile>,
    isa: Isa,
    activations: Activations,
    is_broken: bool,
}

/// Threads that this process may use: its affinity and its control group's quota count.
#[must_use]
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

impl Runner {
    /// A runner with an empty cache.
    ///
    /// # Errors
    /// [`Error::Shape`] when an option is impossible.
    pub fn new(weights: Arc<Weights>, options: RunnerOptions) -> Result<Self> {
        /// More threads than any machine has; a larger number is a mistake.
        const MAX_THREADS: usize = 4096;
        let num_threads = options.num_threads.unwrap_or_else(available_threads);
        if num_threads == 0 || num_threads > MAX_THREADS {
            return Err(Error::shape(
                "num_threads",
                num_threads,
                format!("from 1 to {MAX_THREADS}"),
            ));
        }
        Ok(Self {
            cache: Arc::new(KvCache::new(
                &weights.shape,
                options.num_blocks,
                options.block_size,
                options.kv_storage,
            )?),
            kernels: options.isa.kernels()?,
            pool: Pool::new(num_threads)?,
            weights,
            workspace: None,
            profile: Arc::default(),
            isa: options.isa,
            activations: options.activations,
            is_broken: false,
        })
    }

    /// Instruction set in use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Threads in use.
    #[must_use]
    pub fn num_threads(&self) -> usize {
        self.pool.num_threads()
    }

    /// Times of phases.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Runs one step.
    ///
    /// `logits` receives the first rows of logits in full, as many as its length holds.
    ///
    /// # Errors
    /// [`Error::Plan`] when the plan does not fit; then nothing was changed. [`Error::Forked`] and
    /// [`Error::ThreadStopped`] when the threads are gone.
    pub fn step(&mut self, input: &StepInput<'_>, logits: &mut [f32]) -> Result<StepOutput> {
        if self.is_broken {
            return Err(Error::ThreadStopped);
        }
        let vocab_size = self.weights.shape.vocab_size;
        if !logits.len().is_multiple_of(vocab_size)
            || logits.len() / vocab_size > input.logit_rows.len()
        {
            let rule = format!(
                "{vocab_size} for each of at most {} logit rows",
                input.logit_rows.len()
            );
            return Err(Error::shape("length of logits", logits.len(), rule));
        }
        let plan = StepPlan::new(input, &self.weights.shape, &self.cache)?;
        // SAFETY: no step is running: `self` is borrowed mutably, and steps end before they return.
        unsafe { self.cache.copy_blocks(input.block_copies)? }
        if plan.num_rows() == 0 {
            return Ok(StepOutput::default());
        }
        let num_threads = self.pool.num_threads();
        let num_phases = max_phases(self.weights.layers.len(), plan.logit_rows.len());
        let step = Arc::new(Step {
            workspace: self.workspace_for(&plan),
            weights: Arc::clone(&self.weights),
            cache: Arc::clone(&self.cache),
            kernels: Arc::clone(&self.kernels),
            profile: Arc::clone(&self.profile),
            plan,
            // SAFETY: `logits` is borrowed until this function returns, and `finish` below waits for
            // the threads that may still write.
            logits: unsafe { LogitsOut::new(logits, vocab_size) },
            sampled: Mutex::new(vec![None; input.samples.len()]),
            num_threads,
            work: WorkList::new(num_phases, num_threads),
        });
        let job: Arc<dyn Job> = Arc::clone(&step) as Arc<dyn Job>;
        let outcome = self.pool.run(&job);
        drop(job);
        self.finish(&step, outcome)?;
        let token = |best: crate::kernels::Best| best.all_finite.then_some(best.index as u32);
        Ok(StepOutput {
            best: step.best().into_iter().map(token).collect(),
            sampled: step.take_sampled(),
        })
    }

    /// Makes sure that no thread works on the step any more.
    fn finish(&mut self, step: &Arc<Step>, outcome: Result<()>) -> Result<()> {
        if outcome.is_ok() && !step.work.is_broken() {
            return Ok(());
        }
        if let Err(error @ Error::Forked { .. }) = outcome {
            return Err(error);
        }
        // Every item was not done: helpers may be in the middle of one.
        self.is_broken = true;
        while Arc::strong_count(step) > 1 {
            std::thread::yield_now();
        }
        Err(Error::ThreadStopped)
    }

    /// A workspace that is large enough.
    fn workspace_for(&mut self, plan: &StepPlan) -> Arc<Workspace> {
        let demand = Demand::of(plan);
        if let Some(workspace) = self
            .workspace
            .as_ref()
            .filter(|workspace| demand.fits(&workspace.demand))
        {
            return Arc::clone(workspace);
        }
        let demand = self
            .workspace
            .as_ref()
            .map_or(demand, |workspace| workspace.demand.union(&demand));
        let num_threads = self.pool.num_threads();
        let num_items = num_head_items(self.weights.head().num_groups(), num_threads);
        let workspace = Arc::new(Workspace::new(
            &self.weights,
            demand,
            num_threads,
            num_items,
            self.activations,
        ));
        self.workspace = Some(Arc::clone(&workspace));
        workspace
    }
}
