//! The items of all phases of one step, claimed by threads as they come.

use super::{Patience, share};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A counter alone on its cache lines.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicUsize);

/// Claims and completions of one phase.
struct Phase {
    /// Items claimed from each thread's share.
    claimed: Box<[Counter]>,
    done: Counter,
}

/// Counters for the phases of one step.
///
/// A step gets a list of its own. A thread that comes late to an old list finds every item claimed
/// and touches nothing else, so that memory may be reused by the next step without waiting for it.
pub(crate) struct WorkList {
    phases: Box<[Phase]>,
    is_broken: AtomicBool,
}

/// Marks the list as broken when an item panics.
struct Breaker<'a>(&'a AtomicBool);

impl Drop for Breaker<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Release);
        }
    }
}

/// The step cannot be finished because a thread panicked in it.
#[derive(Debug)]
pub(crate) struct Broken;

impl WorkList {
    pub(crate) fn new(num_phases: usize, num_threads: usize) -> Self {
        let phase = || Phase {
            claimed: (0..num_threads).map(|_| Counter::default()).collect(),
            done: Counter::default(),
        };
        Self {
            phases: (0..num_phases).map(|_| phase()).collect(),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Does items of a phase until all are claimed.
    ///
    /// Every thread calls this with the same number of items. A thread first takes from its own
    /// share, so that it finds in its cache what it had there in the step before, then from others.
    pub(crate) fn work(
        &self,
        phase: usize,
        thread: usize,
        num_items: usize,
        mut item: impl FnMut(usize),
    ) {
        let Phase { claimed, done } = &self.phases[phase];
        let num_threads = claimed.len();
        let _breaker = Breaker(&self.is_broken);
        for offset in 0..num_threads {
            let owner = (thread + offset) % num_threads;
            let items = share(num_items, num_threads, owner);
            while claimed[owner].0.load(Ordering::Relaxed) < items.len() {
                let index = claimed[owner].0.fetch_add(1, Ordering::Relaxed);
                if index >= items.len() {
                    break;
                }
                item(items.start + index);
                done.0.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Waits until all items of a phase are done; then what any of them wrote is visible.
    ///
    /// # Errors
    /// [`Broken`] when an item panicked in another thread.
    pub(crate) fn wait(&self, phase: usize, num_items: usize) -> Result<(), Broken> {
        let done = &self.phases[phase].done;
        let mut patience = Patience::new();
        while done.0.load(Ordering::Acquire) < num_items {
            if self.is_broken() {
                return Err(Broken);
            }
            patience.wait();
        }
        Ok(())
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::AtomicU32;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn every_item_is_done_once_and_before_the_next_phase(sizes in prop::collection::vec(0_usize..40, 1..6), threads in 1_usize..5) {
            let list = WorkList::new(sizes.len(), threads);
            let counts: Vec<Vec<AtomicU32>> = sizes.iter().map(|size| (0..*size).map(|_| AtomicU32::new(0)).collect()).collect();
            std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (list, counts) = (&list, &counts);
                    scope.spawn(move || {
                        for (phase, counts_of_phase) in counts.iter().enumerate() {
                            list.work(phase, thread, counts_of_phase.len(), |item| {
                                counts_of_phase[item].fetch_add(1, Ordering::Relaxed);
                            });
                            assert!(list.wait(phase, counts_of_phase.len()).is_ok());
                            assert!(counts[..=phase].iter().flatten().all(|count| count.load(Ordering::Relaxed) == 1));
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn a_panic_in_one_thread_releases_the_others() {
        let list = WorkList::new(1, 2);
        std::thread::scope(|scope| {
            let panicking = scope.spawn(|| list.work(0, 0, 1, |_| panic!("an item fails")));
            assert!(panicking.join().is_err());
        });
        list.work(0, 1, 1, |_| ());
        assert!(list.wait(0, 1).is_err());
    }
}
