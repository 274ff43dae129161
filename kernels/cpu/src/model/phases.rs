//! The phases of a layer, except attention.
//!
//! Safety of the shared buffers: within a phase, each item writes rows and columns that no other
//! item of the phase reads or writes; between phases, all items of the one before are done.

#![expect(unsafe_code, reason = "items write disjoint parts of shared buffers")]

use super::Phase;
use super::input::Input;
use super::step::{Step, Walk};
use super::weights::Layer;
use super::workspace::{GROUPS_AT_A_TIME, ROW_BLOCK};
use crate::activation::{QuantRowMut, QuantView};
use crate::format::{BLOCK, GROUP};
use crate::kernels::PANEL_SUBS;
use crate::matrix::PackedMatrix;
use crate::threads::{Broken, share};
use std::ops::Range;

/// Rows and columns of one item of a linear layer.
struct Tiling {
    rows: usize,
    units: usize,
    parts: usize,
}

impl Tiling {
    /// Items for `num_units` units of columns, enough to keep threads busy till the end.
    fn new(num_rows: usize, num_units: usize, num_threads: usize) -> Self {
        let parts_per_thread = if num_rows < ROW_BLOCK { 4 } else { 16 };
        Self {
            rows: num_rows,
            units: num_units,
            parts: num_units.min(parts_per_thread * num_threads),
        }
    }

    fn num_items(&self) -> usize {
        self.parts * self.rows.div_ceil(ROW_BLOCK)
    }

    /// Rows and units of an item.
    fn item(&self, item: usize) -> (Range<usize>, Range<usize>) {
        let num_row_blocks = self.rows.div_ceil(ROW_BLOCK);
        let first_row = item % num_row_blocks * ROW_BLOCK;
        let rows = first_row..(first_row + ROW_BLOCK).min(self.rows);
        (rows, share(self.units, self.parts, item / num_row_blocks))
    }
}

/// A projection whose results belong to heads.
#[derive(Clone, Copy)]
enum Target {
    Query,
    Key,
    Value,
}

impl Walk<'_> {
    /// Norm, projections, rotation; queries go to the workspace, keys and values to the cache.
    pub(super) fn query_key_value(&mut self, layer: &Layer, index: usize) -> Result<(), Broken> {
        let step = self.step;
        let (shape, ws) = (&step.weights.shape, &*step.workspace);
        let own = &ws.scratch[self.thread].hidden;
        let num_rows = step.plan.num_rows();
        let norm = norm(step, self.thread, &layer.attn_norm, |row| row);
        let input = Input::new(self, &ws.hidden, own, num_rows, norm)?;
        let num_heads = shape.num_qo_heads + 2 * shape.num_kv_heads;
        let num_row_blocks = num_rows.div_ceil(ROW_BLOCK);
        let thread = self.thread;
        self.phase(Phase::QueryKeyValue, num_heads * num_row_blocks, |item| {
            let (head, first_row) = (item / num_row_blocks, item % num_row_blocks * ROW_BLOCK);
            let rows = first_row..(first_row + ROW_BLOCK).min(num_rows);
            let (target, head) = match head.checked_sub(shape.num_qo_heads) {
                None => (Target::Query, head),
                Some(head) if head < shape.num_kv_heads => (Target::Key, head),
                Some(head) => (Target::Value, head - shape.num_kv_heads),
            };
            let (matrix, bias, norm) = match target {
                Target::Query => (&layer.q_proj, &layer.q_bias, &layer.q_norm),
                Target::Key => (&layer.k_proj, &layer.k_bias, &layer.k_norm),
                Target::Value => (&layer.v_proj, &layer.v_bias, &None),
            };
            let head_dim = shape.head_dim;
            let groups_per_head = head_dim / GROUP;
            let groups = head * groups_per_head..(head + 1) * groups_per_head;
            // SAFETY: scratch is this thread's own.
            let tile = unsafe { ws.scratch[thread].tile.get_mut(0..rows.len() * head_dim) };
            step.linear(matrix, groups, input.view(rows.clone()), tile, thread);
            for (row, values) in rows.zip(tile.chunks_exact_mut(head_dim)) {
                if let Some(bias) = bias {
                    step.kernels
                        .add(values, &bias[head * head_dim..(head + 1) * head_dim]);
                }
                if let Some(norm) = norm {
                    // SAFETY: scratch is this thread's own.
                    let normed = unsafe { ws.scratch[thread].chunk.get_mut(0..head_dim) };
                    step.kernels
                        .rms_norm(values, norm, shape.rms_norm_eps, normed);
                    values.copy_from_slice(normed);
                }
                step.store_head(target, index, head, row, values, thread);
            }
        })
    }

    /// Output projection of attention, added to the residual stream.
    pub(super) fn output(&mut self, layer: &Layer) -> Result<(), Broken> {
        let step = self.step;
        let ws = &*step.workspace;
        let thread = self.thread;
        let own = &ws.scratch[thread].attention;
        let prepare = move |row: usize, out: QuantRowMut<'_>| {
            // SAFETY: scratch is this thread's own.
            let values = unsafe {
                ws.scratch[thread]
                    .row
                    .get_mut(0..step.weights.shape.attention_size())
            };
            step.merged_attention(row, thread, values);
            step.kernels.quantise(values, out);
        };
        let input = Input::new(self, &ws.attention, own, step.plan.num_rows(), prepare)?;
        self.add_linear(Phase::Output, &layer.o_proj, &input)
    }

    /// Norm, gate and up projections, `SwiGLU`; the result is quantised block by block.
    pub(super) fn gate_up(&mut self, layer: &Layer) -> Result<(), Broken> {
        let step = self.step;
        let ws = &*step.workspace;
        let thread = self.thread;
        let num_rows = step.plan.num_rows();
        let norm = norm(step, thread, &layer.mlp_norm, |row| row);
        let input = Input::new(self, &ws.hidden, &ws.scratch[thread].hidden, num_rows, norm)?;
        let tiling = Tiling::new(num_rows, layer.gate_proj.rows() / BLOCK, step.num_threads);
        self.phase(Phase::GateUp, tiling.num_items(), |item| {
            let (rows, units) = tiling.item(item);
            let len = rows.len() * BLOCK;
            // SAFETY: scratch is this thread's own.
            let tile = unsafe { ws.scratch[thread].tile.get_mut(0..2 * len + BLOCK) };
            let (gate, rest) = tile.split_at_mut(len);
            let (up, product) = rest.split_at_mut(len);
            for unit in units {
                let groups = unit * BLOCK / GROUP..(unit + 1) * BLOCK / GROUP;
                step.linear(
                    &layer.gate_proj,
                    groups.clone(),
                    input.view(rows.clone()),
                    gate,
                    thread,
                );
                step.linear(&layer.up_proj, groups, input.view(rows.clone()), up, thread);
                for (row, (gate, up)) in rows.clone().zip(gate.chunks(BLOCK).zip(up.chunks(BLOCK)))
                {
                    step.kernels.silu_and_mul(gate, up, product);
                    // SAFETY: one item writes this block of this row.
                    step.kernels
                        .quantise(product, unsafe { ws.inner.blocks_mut(row, unit..unit + 1) });
                }
            }
        })
    }

    /// Down projection, added to the residual stream.
    pub(super) fn down(&mut self, layer: &Layer) -> Result<(), Broken> {
        let inner = &self.step.workspace.inner;
        let input = Input::ready(inner, self.step.plan.num_rows());
        self.add_linear(Phase::Down, &layer.down_proj, &input)
    }

    fn add_linear<P: Fn(usize, QuantRowMut<'_>)>(
        &mut self,
        kind: Phase,
        matrix: &PackedMatrix,
        input: &Input<'_, P>,
    ) -> Result<(), Broken> {
        let step = self.step;
        let ws = &*step.workspace;
        let thread = self.thread;
        let hidden = step.weights.shape.hidden_size;
        let tiling = Tiling::new(step.plan.num_rows(), matrix.num_groups(), step.num_threads);
        self.phase(kind, tiling.num_items(), |item| {
            let (rows, units) = tiling.item(item);
            for first in units.clone().step_by(GROUPS_AT_A_TIME) {
                let groups = first..(first + GROUPS_AT_A_TIME).min(units.end);
                let columns = groups.len() * GROUP;
                // SAFETY: scratch is this thread's own.
                let tile = unsafe { ws.scratch[thread].tile.get_mut(0..rows.len() * columns) };
                step.linear(
                    matrix,
                    groups.clone(),
                    input.view(rows.clone()),
                    tile,
                    thread,
                );
                for (row, values) in rows.clone().zip(tile.chunks_exact(columns)) {
                    let start = row * hidden + groups.start * GROUP;
                    // SAFETY: one item writes these columns of this row.
                    step.kernels
                        .add(unsafe { ws.x.get_mut(start..start + columns) }, values);
                }
            }
        })
    }
}

impl Step {
    /// [`Kernels::linear`](crate::kernels::Kernels::linear) with this thread's scratch.
    pub(super) fn linear(
        &self,
        matrix: &PackedMatrix,
        groups: Range<usize>,
        x: QuantView<'_>,
        out: &mut [f32],
        thread: usize,
    ) {
        // SAFETY: scratch is this thread's own.
        let panel = unsafe { self.workspace.scratch[thread].panel.get_mut(0..PANEL_SUBS) };
        self.kernels.linear(matrix, groups, x, out, panel);
    }

    /// Rotates one head of one row and puts it where attention looks for it.
    fn store_head(
        &self,
        target: Target,
        layer: usize,
        head: usize,
        row: usize,
        values: &mut [f32],
        thread: usize,
    ) {
        let (shape, ws, cache, kernels) = (
            &self.weights.shape,
            &*self.workspace,
            &*self.cache,
            &*self.kernels,
        );
        let half = shape.head_dim / 2;
        // SAFETY: angles were written in an earlier phase.
        let (cosines, sines) = unsafe {
            (
                ws.cosines.get(row * half..(row + 1) * half),
                ws.sines.get(row * half..(row + 1) * half),
            )
        };
        let sequence = &self.plan.sequences[self.plan.sequence_of[row]];
        let position = self.plan.position(row);
        let slab = |head| {
            cache.slab(
                sequence.block_ids[position / cache.block_size()],
                layer,
                head,
            )
        };
        match target {
            Target::Query => {
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "a head's width is far below 2^24"
                )]
                let scale = 1.0 / (shape.head_dim as f32).sqrt();
                kernels.rotate(values, cosines, sines, scale);
                let start = (row * shape.num_qo_heads + head) * shape.head_dim;
                // SAFETY: one item writes this head of this row.
                unsafe { ws.queries.get_mut(start..start + shape.head_dim) }
                    .copy_from_slice(values);
            }
            Target::Key => {
                kernels.rotate(values, cosines, sines, 1.0);
                // SAFETY: scratch is this thread's own; the plan has checked that no position is written twice.
                unsafe {
                    let narrow = ws.scratch[thread].narrow.get_mut(0..shape.head_dim);
                    cache.store_key(slab(head), position, values, kernels, narrow);
                }
            }
            // SAFETY: the plan has checked that no position is written twice.
            Target::Value => unsafe { cache.store_value(slab(head), position, values, kernels) },
        }
    }
}

/// Norm and quantisation of rows of the residual stream; `source` says which row feeds which.
pub(super) fn norm<'a>(
    step: &'a Step,
    thread: usize,
    weight: &'a [f32],
    source: impl Fn(usize) -> usize + 'a,
) -> impl Fn(usize, QuantRowMut<'_>) + 'a {
    move |row, out| {
        let hidden = step.weights.shape.hidden_size;
        let row = source(row);
        // SAFETY: the residual stream is not written in this phase; scratch is this thread's own.
        let (x, normed) = unsafe {
            let ws = &step.workspace;
            (
                ws.x.get(row * hidden..(row + 1) * hidden),
                ws.scratch[thread].row.get_mut(0..hidden),
            )
        };
        step.kernels
            .rms_norm(x, weight, step.weights.shape.rms_norm_eps, normed);
        step.kernels.quantise(normed, out);
    }
}
