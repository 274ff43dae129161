//! The one error type of the crate.

/// Everything that can be wrong with a model, a cache, or a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A number that describes the model, the cache or the threads is impossible or not covered.
    #[error("{field} is {value}, but must be {rule}")]
    Shape {
        /// Which number.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        rule: String,
    },
    /// A tensor is missing, damaged, of a wrong shape, or stored in a form that is not covered.
    #[error("tensor {name}: {problem}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A step's plan does not fit the model or the cache.
    #[error("{field}[{index}] is {value}, but must be {rule}")]
    Plan {
        /// Which array of the plan.
        field: &'static str,
        /// Which entry.
        index: usize,
        /// What it holds.
        value: u64,
        /// What it may hold.
        rule: String,
    },
    /// The runner was made in another process: its threads do not exist in this one.
    #[error(
        "the runner was made in process {made_in} and cannot be used in its fork; make it after the fork"
    )]
    Forked {
        /// The process that made it.
        made_in: u32,
    },
    /// A thread stopped in the middle of a step; the runner cannot be used any more.
    #[error("a compute thread stopped unexpectedly; the runner cannot be used any more")]
    ThreadStopped,
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn shape(
        field: &'static str,
        value: impl std::fmt::Display,
        rule: impl Into<String>,
    ) -> Self {
        Self::Shape {
            field,
            value: value.to_string(),
            rule: rule.into(),
        }
    }

    pub(crate) fn tensor(name: &str, problem: impl Into<String>) -> Self {
        Self::Tensor {
            name: name.to_owned(),
            problem: problem.into(),
        }
    }

    pub(crate) fn plan(
        field: &'static str,
        index: usize,
        value: impl Into<u64>,
        rule: impl Into<String>,
    ) -> Self {
        Self::Plan {
            field,
            index,
            value: value.into(),
            rule: rule.into(),
        }
    }
}
