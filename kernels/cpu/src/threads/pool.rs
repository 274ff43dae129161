//! Helper threads that sleep between steps.

use super::Patience;
use crate::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// What all threads do together; each call gets the number of its thread.
pub(crate) trait Job: Send + Sync {
    /// Takes part until nothing is left to do.
    fn run(&self, thread: usize);
}

#[derive(Default)]
struct Slot {
    job: Option<Arc<dyn Job>>,
    is_closing: bool,
}

#[derive(Default)]
struct Board {
    slot: Mutex<Slot>,
    /// Goes up with every change of the slot.
    edition: AtomicU64,
    changed: Condvar,
}

impl Board {
    /// The slot; a thread that panicked while holding it left it whole, since it only assigns.
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn post(&self, change: impl FnOnce(&mut Slot)) {
        let mut slot = self.lock();
        change(&mut slot);
        self.edition.fetch_add(1, Ordering::Release);
        drop(slot);
        self.changed.notify_all();
    }
}

/// Threads beside the caller's. Several pools may exist in one process.
pub(crate) struct Pool {
    board: Arc<Board>,
    helpers: Vec<JoinHandle<()>>,
    process: u32,
}

impl Pool {
    /// A pool in which `num_threads` threads work, the caller's among them.
    ///
    /// # Errors
    /// [`Error::Shape`] when the system refuses a thread.
    pub(crate) fn new(num_threads: usize) -> Result<Self> {
        let board = Arc::new(Board::default());
        let mut pool = Self {
            board: Arc::clone(&board),
            helpers: Vec::new(),
            process: std::process::id(),
        };
        for thread in 1..num_threads {
            let board = Arc::clone(&board);
            let helper = std::thread::Builder::new().name(format!("deepinfer-cpu-{thread}"));
            let helper = helper
                .spawn(move || help(&board, thread))
                .map_err(|error| {
                    Error::shape(
                        "num_threads",
                        num_threads,
                        format!("a number that the system allows ({error})"),
                    )
                })?;
            pool.helpers.push(helper);
        }
        Ok(pool)
    }

    pub(crate) fn num_threads(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Runs a job on the caller's thread and on every helper that wakes in time.
    ///
    /// # Errors
    /// [`Error::Forked`] in a process other than the one that made the pool;
    /// [`Error::ThreadStopped`] when the job panicked.
    pub(crate) fn run(&self, job: &Arc<dyn Job>) -> Result<()> {
        if std::process::id() != self.process {
            return Err(Error::Forked {
                made_in: self.process,
            });
        }
        self.board.post(|slot| slot.job = Some(Arc::clone(job)));
        let outcome = catch_unwind(AssertUnwindSafe(|| job.run(0)));
        self.board.lock().job = None;
        outcome.map_err(|_| Error::ThreadStopped)
    }
}

fn help(board: &Board, thread: usize) {
    let mut seen = 0;
    loop {
        let mut patience = Patience::new();
        while board.edition.load(Ordering::Acquire) == seen && !patience.is_exhausted() {
            patience.wait();
        }
        let mut slot = board.lock();
        while board.edition.load(Ordering::Acquire) == seen {
            slot = board
                .changed
                .wait(slot)
                .unwrap_or_else(PoisonError::into_inner);
        }
        seen = board.edition.load(Ordering::Acquire);
        if slot.is_closing {
            return;
        }
        let job = slot.job.clone();
        drop(slot);
        if let Some(job) = job {
            // A panic has marked the work as broken; the thread that waits for it reports it.
            let _ = catch_unwind(AssertUnwindSafe(|| job.run(thread)));
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // The helpers were not copied by the fork, and the lock may have been held by one.
            self.helpers.drain(..).for_each(std::mem::forget);
            return;
        }
        self.board.post(|slot| slot.is_closing = true);
        for helper in self.helpers.drain(..) {
            let _ = helper.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::WorkList;
    use std::sync::atomic::AtomicUsize;

    struct Count {
        work: WorkList,
        total: AtomicUsize,
    }

    impl Job for Count {
        fn run(&self, thread: usize) {
            self.work.work(0, thread, 100, |item| {
                self.total.fetch_add(item, Ordering::Relaxed);
            });
            let _ = self.work.wait(0, 100);
        }
    }

    #[test]
    fn many_steps_with_several_pools() -> Result<()> {
        let pools = [Pool::new(1)?, Pool::new(2)?, Pool::new(3)?];
        for _ in 0..200 {
            for pool in &pools {
                let count = Arc::new(Count {
                    work: WorkList::new(1, pool.num_threads()),
                    total: AtomicUsize::new(0),
                });
                let job: Arc<dyn Job> = Arc::clone(&count) as Arc<dyn Job>;
                pool.run(&job)?;
                assert_eq!(count.total.load(Ordering::Relaxed), 4950);
            }
        }
        Ok(())
    }
}
