//! The quantised input of a linear layer: prepared by each thread for itself, or once for all.
//!
//! With few rows, preparing them twice is cheaper than waiting for another thread to do it.

#![expect(unsafe_code, reason = "prepared rows are shared between phases")]

use super::Phase;
use super::step::Walk;
use super::workspace::OWN_ROWS;
use crate::activation::{QuantRowMut, QuantRows, QuantView};
use crate::threads::Broken;
use std::cell::Cell;
use std::ops::Range;

/// Input rows of one linear layer, as one thread sees them.
pub(super) struct Input<'a, P> {
    rows: &'a QuantRows,
    num_rows: usize,
    num_blocks: usize,
    /// Fills one row; `None` once all are filled.
    unprepared: Cell<Option<P>>,
}

impl<'a> Input<'a, fn(usize, QuantRowMut<'_>)> {
    /// Rows that an earlier phase has filled.
    pub(super) fn ready(rows: &'a QuantRows, num_rows: usize) -> Self {
        Self {
            rows,
            num_rows,
            num_blocks: rows.num_blocks(),
            unprepared: Cell::new(None),
        }
    }
}

impl<'a, P: Fn(usize, QuantRowMut<'_>)> Input<'a, P> {
    /// Rows that `prepare` fills: into `shared` by all threads together, or into this thread's `own`
    /// when they are few.
    pub(super) fn new(
        walk: &mut Walk<'_>,
        shared: &'a QuantRows,
        own: &'a QuantRows,
        num_rows: usize,
        prepare: P,
    ) -> Result<Self, Broken> {
        let num_blocks = shared.num_blocks();
        if num_rows < OWN_ROWS {
            return Ok(Self {
                rows: own,
                num_rows,
                num_blocks,
                unprepared: Cell::new(Some(prepare)),
            });
        }
        walk.phase(Phase::Prepare, num_rows, |row| {
            // SAFETY: each row is one item, and readers come after this phase.
            prepare(row, unsafe { shared.blocks_mut(row, 0..num_blocks) });
        })?;
        Ok(Self {
            rows: shared,
            num_rows,
            num_blocks,
            unprepared: Cell::new(None),
        })
    }

    /// Some of the rows. The first call prepares them if they are this thread's own.
    pub(super) fn view(&self, rows: Range<usize>) -> QuantView<'a> {
        if let Some(prepare) = self.unprepared.take() {
            for row in 0..self.num_rows {
                // SAFETY: these rows are this thread's own, and no view of them exists yet.
                prepare(row, unsafe {
                    self.rows.blocks_mut(row, 0..self.num_blocks)
                });
            }
        }
        // SAFETY: the rows are filled, and are not written again before this phase has ended.
        unsafe { self.rows.view(rows) }
    }
}
