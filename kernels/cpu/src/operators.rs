//! Single operators on whole arrays, for models that are not one native step.
//!
//! Arrays are contiguous, rows first. Each operator gives a row the bits that it has in a step of
//! [`Runner`](crate::Runner), whatever the number of rows and threads.

#![expect(unsafe_code, reason = "threads write disjoint columns of one result")]

use crate::activation::{Activations, QuantRows};
use crate::error::{Error, Result};
use crate::format::{BLOCK, GROUP};
use crate::kernels::{
    CHUNK, ChunkResult, Isa, KEY_TILE, Kernels, KvTile, MAX_QUERIES, PANEL_SUBS, QueryTile,
    SoftmaxState, Tiles, Unpacked, attend_scratch,
};
use crate::matrix::PackedMatrix;
use crate::shared::Shared;
use crate::simd::LANES;
use crate::threads::share;
use std::ops::Range;
use std::sync::Arc;

/// Rows that share each unpacking of weights.
const ROW_BLOCK: usize = 128;
/// Columns of a result that a thread computes before it stores them.
const COLUMNS_AT_A_TIME: usize = 4 * GROUP;

/// The operators on one instruction set.
pub struct Operators {
    kernels: Arc<dyn Kernels>,
    num_threads: usize,
}

/// Shape of an attention operator.
#[derive(Debug, Clone, Copy)]
pub struct AttentionShape {
    /// Query heads.
    pub num_qo_heads: usize,
    /// Key and value heads; they divide the query heads.
    pub num_kv_heads: usize,
    /// Width of a head; a multiple of 16.
    pub head_dim: usize,
    /// Multiplies the products of queries and keys.
    pub softmax_scale: f32,
    /// Positions that a query sees, itself among them; `None` for all.
    pub sliding_window: Option<usize>,
}

impl Operators {
    /// Operators that spread large products over `num_threads` threads.
    ///
    /// # Errors
    /// [`Error::Shape`] when the processor lacks the instruction set.
    pub fn new(isa: Isa, num_threads: usize) -> Result<Self> {
        Ok(Self {
            kernels: isa.kernels()?,
            num_threads: num_threads.max(1),
        })
    }

    /// `out[row] = matrix x[row]` for rows of `matrix.columns()` numbers.
    ///
    /// # Errors
    /// [`Error::Shape`] when a length does not fit.
    pub fn linear(
        &self,
        matrix: &PackedMatrix,
        x: &[f32],
        form: Activations,
        out: &mut [f32],
    ) -> Result<()> {
        let (columns, width) = (matrix.columns(), matrix.rows());
        if !columns.is_multiple_of(BLOCK) {
            let rule = format!("a multiple of {BLOCK}");
            return Err(Error::shape("columns of the matrix", columns, rule));
        }
        let num_rows = count_rows("x", x, columns)?;
        check_len("out", out, num_rows * width)?;
        let keeps_floats = matrix.storage().is_float();
        let rows = QuantRows::new(num_rows, columns, form, keeps_floats);
        for (row, values) in x.chunks_exact(columns).enumerate() {
            // SAFETY: this thread is alone with the rows.
            let target = unsafe { rows.blocks_mut(row, 0..columns / BLOCK) };
            self.kernels.quantise(values, target);
        }
        let result = Shared::<f32>::zeroed(num_rows * width);
        let num_groups = matrix.num_groups();
        let num_threads = self.num_threads.min(num_groups);
        std::thread::scope(|scope| {
            let (rows, result) = (&rows, &result);
            for thread in 1..num_threads {
                let groups = share(num_groups, num_threads, thread);
                scope.spawn(move || self.linear_groups(matrix, rows, num_rows, groups, result));
            }
            let groups = share(num_groups, num_threads, 0);
            self.linear_groups(matrix, rows, num_rows, groups, result);
        });
        // SAFETY: the threads are done.
        out.copy_from_slice(unsafe { result.get(0..num_rows * width) });
        Ok(())
    }

    fn linear_groups(
        &self,
        matrix: &PackedMatrix,
        rows: &QuantRows,
        num_rows: usize,
        groups: Range<usize>,
        result: &Shared<f32>,
    ) {
        let width = matrix.rows();
        let mut panel: Vec<Unpacked> = vec![bytemuck::Zeroable::zeroed(); PANEL_SUBS];
        let mut tile = vec![0.0; num_rows.min(ROW_BLOCK) * COLUMNS_AT_A_TIME];
        for first in groups.clone().step_by(COLUMNS_AT_A_TIME / GROUP) {
            let some = first..(first + COLUMNS_AT_A_TIME / GROUP).min(groups.end);
            let (start, stride) = (some.start * GROUP, some.len() * GROUP);
            let len = stride.min(width - start);
            for first_row in (0..num_rows).step_by(ROW_BLOCK) {
                let block = first_row..(first_row + ROW_BLOCK).min(num_rows);
                let tile = &mut tile[..block.len() * stride];
                // SAFETY: nobody writes the rows any more.
                let view = unsafe { rows.view(block.clone()) };
                self.kernels
                    .linear(matrix, some.clone(), view, tile, &mut panel);
                for (row, values) in block.zip(tile.chunks_exact(stride)) {
                    let target = row * width + start;
                    // SAFETY: this thread alone computes these columns.
                    unsafe { result.get_mut(target..target + len) }.copy_from_slice(&values[..len]);
                }
            }
        }
    }

    /// [`Operators::linear`] for experts: rows `starts[i]..starts[i + 1]` of `x` meet matrix i.
    ///
    /// # Errors
    /// [`Error::Shape`] when the matrices differ in shape, or a length or start does not fit.
    pub fn grouped_linear(
        &self,
        matrices: &[&PackedMatrix],
        starts: &[usize],
        x: &[f32],
        form: Activations,
        out: &mut [f32],
    ) -> Result<()> {
        let Some(first) = matrices.first() else {
            return Err(Error::shape("number of matrices", 0, "at least 1"));
        };
        let (columns, width) = (first.columns(), first.rows());
        let fits = |matrix: &&&PackedMatrix| (matrix.columns(), matrix.rows()) == (columns, width);
        if let Some(other) = matrices.iter().find(|matrix| !fits(matrix)) {
            let shape = format!("{} x {}", other.rows(), other.columns());
            let rule = format!("{width} x {columns} as the first one's");
            return Err(Error::shape("shape of a matrix", shape, rule));
        }
        let num_rows = count_rows("x", x, columns)?;
        check_len("out", out, num_rows * width)?;
        let is_whole = starts.len() == matrices.len() + 1
            && starts.is_sorted()
            && starts[0] == 0
            && starts[matrices.len()] == num_rows;
        if !is_whole {
            let rule = format!("ascending from 0 to {num_rows}, one more than matrices");
            return Err(Error::shape("starts", format!("{starts:?}"), rule));
        }
        for (matrix, range) in matrices.iter().zip(starts.windows(2)) {
            let x = &x[range[0] * columns..range[1] * columns];
            self.linear(
                matrix,
                x,
                form,
                &mut out[range[0] * width..range[1] * width],
            )?;
        }
        Ok(())
    }

    /// `out = x * weight / sqrt(mean(x^2) + eps)` for rows as long as `weight`.
    ///
    /// # Errors
    /// [`Error::Shape`] when a length does not fit.
    pub fn rms_norm(&self, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) -> Result<()> {
        check_lanes("length of weight", weight.len())?;
        count_rows("x", x, weight.len())?;
        check_len("out", out, x.len())?;
        let rows = x.chunks_exact(weight.len());
        for (x, out) in rows.zip(out.chunks_exact_mut(weight.len())) {
            self.kernels.rms_norm(x, weight, eps, out);
        }
        Ok(())
    }

    /// `out = silu(first half) * second half` for rows of `2 * width` numbers.
    ///
    /// # Errors
    /// [`Error::Shape`] when a length does not fit.
    pub fn silu_and_mul(&self, gate_up: &[f32], width: usize, out: &mut [f32]) -> Result<()> {
        check_lanes("width", width)?;
        let num_rows = count_rows("gate_up", gate_up, 2 * width)?;
        check_len("out", out, num_rows * width)?;
        let rows = gate_up.chunks_exact(2 * width);
        for (row, out) in rows.zip(out.chunks_exact_mut(width)) {
            let (gate, up) = row.split_at(width);
            self.kernels.silu_and_mul(gate, up, out);
        }
        Ok(())
    }

    /// Turns pairs (i, i + `head_dim` / 2) of each head of `x` `[rows][heads][head_dim]` by the angles
    /// of its row, given as cosines and sines `[rows][head_dim / 2]`.
    ///
    /// # Errors
    /// [`Error::Shape`] when a length does not fit.
    pub fn rope(
        &self,
        x: &mut [f32],
        head_dim: usize,
        cosines: &[f32],
        sines: &[f32],
    ) -> Result<()> {
        let half = head_dim / 2;
        check_lanes("head_dim / 2", half)?;
        let num_rows = count_rows("cosines", cosines, half)?;
        check_len("sines", sines, cosines.len())?;
        let num_heads = count_rows("x", x, num_rows.max(1) * head_dim)?;
        let angles = cosines.chunks_exact(half).zip(sines.chunks_exact(half));
        for (row, (cosines, sines)) in x
            .chunks_exact_mut((num_heads * head_dim).max(1))
            .zip(angles)
        {
            for head in row.chunks_exact_mut(head_dim) {
                self.kernels.rotate(head, cosines, sines, 1.0);
            }
        }
        Ok(())
    }

    /// Causal attention of queries `[rows][qo heads][head_dim]` at the last positions of keys and
    /// values `[positions][kv heads][head_dim]`, which are rounded to half precision.
    ///
    /// # Errors
    /// [`Error::Shape`] when a length does not fit.
    pub fn attention(
        &self,
        shape: AttentionShape,
        queries: &[f32],
        keys: &[f32],
        values: &[f32],
        out: &mut [f32],
    ) -> Result<()> {
        let (head_dim, num_kv_heads) = (shape.head_dim, shape.num_kv_heads);
        if head_dim == 0 || !head_dim.is_multiple_of(KEY_TILE) {
            let rule = format!("a positive multiple of {KEY_TILE}");
            return Err(Error::shape("head_dim", head_dim, rule));
        }
        if num_kv_heads == 0 || !shape.num_qo_heads.is_multiple_of(num_kv_heads) {
            let rule =
                format!("a multiple of num_kv_heads, {num_kv_heads}, which must be positive");
            return Err(Error::shape("num_qo_heads", shape.num_qo_heads, rule));
        }
        let num_rows = count_rows("queries", queries, shape.num_qo_heads * head_dim)?;
        let num_positions = count_rows("keys", keys, num_kv_heads * head_dim)?;
        check_len("values", values, keys.len())?;
        check_len("out", out, queries.len())?;
        if num_rows > num_positions || shape.sliding_window == Some(0) {
            let rule = format!("at most the number of keys, {num_positions}, and a window not 0");
            return Err(Error::shape("number of queries", num_rows, rule));
        }
        for kv_head in 0..num_kv_heads {
            let cache = HeadCache::new(&*self.kernels, &shape, kv_head, keys, values);
            for row in 0..num_rows {
                let position = num_positions - num_rows + row;
                self.attend_row(&shape, kv_head, row, position, queries, &cache, out);
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one row of one head of one call")]
    fn attend_row(
        &self,
        shape: &AttentionShape,
        kv_head: usize,
        row: usize,
        position: usize,
        queries: &[f32],
        cache: &HeadCache,
        out: &mut [f32],
    ) {
        let head_dim = shape.head_dim;
        let group_size = shape.num_qo_heads / shape.num_kv_heads;
        let first_visible = shape
            .sliding_window
            .map_or(0, |window| (position + 1).saturating_sub(window));
        let start = (row * shape.num_qo_heads + kv_head * group_size) * head_dim;
        let end = start + group_size * head_dim;
        let mut scratch = vec![0.0; attend_scratch(head_dim)];
        let len = MAX_QUERIES * head_dim;
        let pieces = queries[start..end].chunks(len);
        for (queries, out) in pieces.zip(out[start..end].chunks_mut(len)) {
            let scaled: Vec<f32> = queries.iter().map(|x| x * shape.softmax_scale).collect();
            out.fill(0.0);
            let mut states: Vec<SoftmaxState<'_>> = out
                .chunks_exact_mut(head_dim)
                .map(|values| SoftmaxState {
                    max: f32::NEG_INFINITY,
                    sum: 0.0,
                    values,
                })
                .collect();
            for chunk in first_visible / CHUNK..=position / CHUNK {
                let origin = chunk * CHUNK;
                let span = (
                    first_visible.max(origin) - origin,
                    (position + 1).min(origin + CHUNK) - origin,
                );
                let spans = vec![span; states.len()];
                let mut room = vec![0.0; states.len() * head_dim];
                let mut results: Vec<ChunkResult<'_>> = room
                    .chunks_exact_mut(head_dim)
                    .map(|values| ChunkResult {
                        max: 0.0,
                        sum: 0.0,
                        values,
                    })
                    .collect();
                let tile = QueryTile {
                    values: &scaled,
                    head_dim,
                    spans: &spans,
                };
                let tiles = cache.tiles(origin, origin + span.1);
                self.kernels
                    .attend(&tile, Tiles::Half(&tiles), &mut results, &mut scratch);
                for (state, result) in states.iter_mut().zip(&results) {
                    self.kernels.fold(state, result);
                }
            }
            for SoftmaxState { max, sum, values } in states {
                let mut weighted = values.to_vec();
                let state = SoftmaxState {
                    max,
                    sum,
                    values: &mut weighted,
                };
                self.kernels.finish(&state, values);
            }
        }
    }
}

/// Keys and values of one head as the kernels read them.
struct HeadCache {
    head_dim: usize,
    keys: Vec<u16>,
    values: Vec<u16>,
}

impl HeadCache {
    fn new(
        kernels: &dyn Kernels,
        shape: &AttentionShape,
        kv_head: usize,
        keys: &[f32],
        values: &[f32],
    ) -> Self {
        let (head_dim, stride) = (shape.head_dim, shape.num_kv_heads * shape.head_dim);
        let len = (keys.len() / stride).next_multiple_of(KEY_TILE) * head_dim;
        let (mut packed, mut rows) = (vec![0; len], vec![0; len]);
        let mut narrow = vec![0; head_dim];
        let own = kv_head * head_dim..(kv_head + 1) * head_dim;
        let positions = keys.chunks_exact(stride).zip(values.chunks_exact(stride));
        for (position, (key, value)) in positions.enumerate() {
            kernels.narrow(&key[own.clone()], &mut narrow);
            let tile = position / KEY_TILE * KEY_TILE * head_dim + position % KEY_TILE;
            for (column, number) in narrow.iter().enumerate() {
                packed[tile + column * KEY_TILE] = *number;
            }
            let row = position * head_dim..(position + 1) * head_dim;
            kernels.narrow(&value[own.clone()], &mut rows[row]);
        }
        Self {
            head_dim,
            keys: packed,
            values: rows,
        }
    }

    /// Tiles of the positions `start..end`; `start` is a multiple of 16.
    fn tiles(&self, start: usize, end: usize) -> Vec<KvTile<'_, u16>> {
        let len = self.head_dim * KEY_TILE;
        (start / KEY_TILE..end.div_ceil(KEY_TILE))
            .map(|tile| KvTile {
                keys: &self.keys[tile * len..(tile + 1) * len],
                values: &self.values[tile * len..(tile + 1) * len],
                key_scales: &[],
                value_scales: &[],
            })
            .collect()
    }
}

/// Rows of `len` numbers in an array.
fn count_rows(field: &'static str, values: &[f32], len: usize) -> Result<usize> {
    if len == 0 || !values.len().is_multiple_of(len) {
        let rule = format!("a multiple of {len}, which must not be 0");
        return Err(Error::shape(
            field,
            format!("{} numbers", values.len()),
            rule,
        ));
    }
    Ok(values.len() / len)
}

fn check_len(field: &'static str, values: &[f32], len: usize) -> Result<()> {
    if values.len() == len {
        return Ok(());
    }
    let value = format!("{} numbers", values.len());
    Err(Error::shape(field, value, format!("{len} numbers")))
}

fn check_lanes(field: &'static str, len: usize) -> Result<()> {
    if len > 0 && len.is_multiple_of(LANES) {
        return Ok(());
    }
    Err(Error::shape(
        field,
        len,
        format!("a positive multiple of {LANES}"),
    ))
}
