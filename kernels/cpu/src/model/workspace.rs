//! Buffers that the phases of a step hand to each other.

use super::{StepPlan, Weights, plan::ATTENTION_ROWS, step::HEAD_ROWS};
use crate::activation::{Activations, QuantRows};
use crate::format::{BLOCK, GROUP};
use crate::kernels::{Best, MAX_QUERIES, PANEL_SUBS, Unpacked, attend_scratch};
use crate::shared::Shared;

/// Rows below which every thread prepares the input of a linear layer itself.
pub(crate) const OWN_ROWS: usize = 4;
/// Rows that one item of a linear layer covers.
pub(crate) const ROW_BLOCK: usize = 128;
/// Groups of weight rows that an item computes before it stores them.
pub(crate) const GROUPS_AT_A_TIME: usize = 4;

/// How much a step needs; a workspace serves every step that needs no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Demand {
    rows: usize,
    logit_rows: usize,
    /// Rows whose logits are kept for samples.
    kept_rows: usize,
    partials: usize,
}

impl Demand {
    pub(crate) fn of(plan: &StepPlan) -> Self {
        Self {
            rows: plan.num_rows(),
            logit_rows: plan.logit_rows.len(),
            kept_rows: if plan.samples.is_empty() {
                0
            } else {
                plan.logit_rows.len().min(HEAD_ROWS)
            },
            partials: plan.num_partials,
        }
    }

    pub(crate) fn fits(&self, other: &Self) -> bool {
        self.rows <= other.rows
            && self.logit_rows <= other.logit_rows
            && self.kept_rows <= other.kept_rows
            && self.partials <= other.partials
    }

    /// The larger of both in every respect.
    pub(crate) fn union(&self, other: &Self) -> Self {
        Self {
            rows: self.rows.max(other.rows),
            logit_rows: self.logit_rows.max(other.logit_rows),
            kept_rows: self.kept_rows.max(other.kept_rows),
            partials: self.partials.max(other.partials),
        }
    }
}

/// One thread's own buffers.
pub(crate) struct Scratch {
    /// Inputs of a linear layer that this thread prepared for itself.
    pub(crate) hidden: QuantRows,
    pub(crate) attention: QuantRows,
    /// A row of floats on its way to being quantised.
    pub(crate) row: Shared<f32>,
    /// Results of a linear layer before they are stored.
    pub(crate) tile: Shared<f32>,
    pub(crate) panel: Shared<Unpacked>,
    pub(crate) narrow: Shared<u16>,
    pub(crate) queries: Shared<f32>,
    pub(crate) attend: Shared<f32>,
    pub(crate) chunk: Shared<f32>,
    pub(crate) state: Shared<f32>,
}

/// Buffers of one step, for all threads.
pub(crate) struct Workspace {
    pub(crate) demand: Demand,
    /// Residual stream, `[row][hidden]`.
    pub(crate) x: Shared<f32>,
    /// `[row][head_dim / 2]`.
    pub(crate) cosines: Shared<f32>,
    pub(crate) sines: Shared<f32>,
    /// Rotated and scaled queries, `[row][head][head_dim]`.
    pub(crate) queries: Shared<f32>,
    /// Finished attention, `[row][head][head_dim]`.
    pub(crate) attended: Shared<f32>,
    /// Chunk results: max, sum, then `head_dim` values.
    pub(crate) partials: Shared<f32>,
    /// Inputs of linear layers, where threads share the preparation.
    pub(crate) hidden: QuantRows,
    pub(crate) attention: QuantRows,
    pub(crate) inner: QuantRows,
    /// Best logit, `[head item][logit row]`.
    pub(crate) best: Shared<BestSlot>,
    /// Logits that samples are taken from, `[row of the pass][vocabulary]`.
    pub(crate) kept_logits: Shared<f32>,
    pub(crate) scratch: Vec<Scratch>,
}

/// [`Best`] as plain data.
#[derive(Clone, Copy, bytemuck::Zeroable)]
pub(crate) struct BestSlot {
    index: u64,
    value: f32,
    is_poisoned: u32,
}

impl From<Best> for BestSlot {
    fn from(best: Best) -> Self {
        Self {
            index: best.index as u64,
            value: best.value,
            is_poisoned: u32::from(!best.all_finite),
        }
    }
}

impl From<BestSlot> for Best {
    fn from(slot: BestSlot) -> Self {
        Self {
            index: slot.index as usize,
            value: slot.value,
            all_finite: slot.is_poisoned == 0,
        }
    }
}

impl Workspace {
    pub(crate) fn new(
        weights: &Weights,
        demand: Demand,
        num_threads: usize,
        num_head_items: usize,
        form: Activations,
    ) -> Self {
        let shape = &weights.shape;
        let keeps_floats = weights.has_floats();
        let Demand {
            rows,
            logit_rows,
            kept_rows,
            partials,
        } = demand;
        let (hidden, attention) = (shape.hidden_size, shape.attention_size());
        let input_rows = rows.max(logit_rows);
        let tile_rows = input_rows.min(ROW_BLOCK);
        let tile_columns = shape.head_dim.max(GROUPS_AT_A_TIME * GROUP).max(3 * BLOCK);
        let item_queries = ATTENTION_ROWS * shape.group_size() * shape.head_dim;
        let scratch = || Scratch {
            hidden: QuantRows::new(OWN_ROWS, hidden, form, keeps_floats),
            attention: QuantRows::new(OWN_ROWS, attention, form, keeps_floats),
            row: Shared::zeroed(hidden.max(attention)),
            tile: Shared::zeroed(tile_rows * tile_columns),
            panel: Shared::zeroed(PANEL_SUBS),
            narrow: Shared::zeroed(shape.head_dim),
            queries: Shared::zeroed(item_queries),
            attend: Shared::zeroed(attend_scratch(shape.head_dim)),
            chunk: Shared::zeroed(MAX_QUERIES * shape.head_dim),
            state: Shared::zeroed(item_queries),
        };
        Self {
            demand,
            x: Shared::zeroed(rows * hidden),
            cosines: Shared::zeroed(rows * shape.head_dim / 2),
            sines: Shared::zeroed(rows * shape.head_dim / 2),
            queries: Shared::zeroed(rows * attention),
            attended: Shared::zeroed(rows * attention),
            partials: Shared::zeroed(partials * (shape.head_dim + 2)),
            hidden: QuantRows::new(input_rows, hidden, form, keeps_floats),
            attention: QuantRows::new(rows, attention, form, keeps_floats),
            inner: QuantRows::new(rows, shape.intermediate_size, form, keeps_floats),
            best: Shared::zeroed(num_head_items * logit_rows),
            kept_logits: Shared::zeroed(kept_rows * shape.vocab_size),
            scratch: (0..num_threads).map(|_| scratch()).collect(),
        }
    }
}
