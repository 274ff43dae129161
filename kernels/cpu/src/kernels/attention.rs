//! Attention of a few queries over a chunk of 256 positions of the KV cache.
//!
//! Keys lie as `[16 positions side by side][head_dim]`, so that lanes are positions in the products
//! with a query; values lie as `[position][head_dim]`, so that lanes are columns in the weighted sum.
//! Every sum over columns or positions runs in order, one accumulator per lane, so that a query has
//! the same bits alone and beside others.

use super::math;
use crate::simd::{LANES, Op, Simd};

/// Positions whose keys lie side by side.
pub(crate) const KEY_TILE: usize = 16;
/// Positions in a chunk; chunks begin at multiples of it.
pub(crate) const CHUNK: usize = 256;
/// Queries that share each load of a key or value.
pub(crate) const MAX_QUERIES: usize = 6;

/// How far ahead keys and values are asked for: they follow each other within a block.
const PREFETCH_BYTES: usize = 2048;

/// Queries of heads that share keys and values.
pub(crate) struct QueryTile<'a> {
    /// `[query][head_dim]`, already multiplied by the softmax scale.
    pub(crate) values: &'a [f32],
    pub(crate) head_dim: usize,
    /// For each query the first and one past the last position it sees, counted from the chunk's
    /// start; never empty.
    pub(crate) spans: &'a [(usize, usize)],
}

/// Keys and values of 16 positions of one KV head.
#[derive(Clone, Copy)]
pub(crate) struct KvTile<'a> {
    /// `[head_dim][16]`, half precision.
    pub(crate) keys: &'a [u16],
    /// `[16][head_dim]`, half precision.
    pub(crate) values: &'a [u16],
}

/// Softmax over one chunk, not yet divided by its sum.
pub(crate) struct ChunkResult<'a> {
    pub(crate) max: f32,
    pub(crate) sum: f32,
    /// Values weighted by e^(score - max).
    pub(crate) values: &'a mut [f32],
}

/// The same over all chunks so far.
pub(crate) struct SoftmaxState<'a> {
    pub(crate) max: f32,
    pub(crate) sum: f32,
    pub(crate) values: &'a mut [f32],
}

pub(super) struct Attend<'a, 'b> {
    pub(super) queries: &'a QueryTile<'a>,
    /// Tiles from the chunk's start; at least up to the last position seen.
    pub(super) tiles: &'a [KvTile<'a>],
    pub(super) out: &'a mut [ChunkResult<'b>],
    /// `[MAX_QUERIES][CHUNK]`.
    pub(super) scores: &'a mut [f32],
}

impl Op for Attend<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Attend {
            queries,
            tiles,
            out,
            scores,
        } = self;
        let (scores, _) = scores.as_chunks_mut::<CHUNK>();
        match queries.spans.len() {
            1 => attend::<S, 1, 4>(s, queries, tiles, out, scores),
            2 => attend::<S, 2, 4>(s, queries, tiles, out, scores),
            3 => attend::<S, 3, 4>(s, queries, tiles, out, scores),
            4 => attend::<S, 4, 2>(s, queries, tiles, out, scores),
            5 => attend::<S, 5, 2>(s, queries, tiles, out, scores),
            _ => attend::<S, MAX_QUERIES, 2>(s, queries, tiles, out, scores),
        }
    }
}

/// `Q` queries, `W` vectors of value columns at a time.
#[inline(always)]
fn attend<S: Simd, const Q: usize, const W: usize>(
    s: S,
    queries: &QueryTile<'_>,
    tiles: &[KvTile<'_>],
    out: &mut [ChunkResult<'_>],
    scores: &mut [[f32; CHUNK]],
) {
    let spans: [(usize, usize); Q] = std::array::from_fn(|query| queries.spans[query]);
    let first = spans.iter().map(|span| span.0).min().unwrap_or(0);
    let last = spans.iter().map(|span| span.1).max().unwrap_or(0);
    for tile in first / KEY_TILE..last.div_ceil(KEY_TILE) {
        score_tile::<S, Q>(s, queries, tiles[tile].keys, scores, tile * KEY_TILE);
    }
    for (query, &(begin, end)) in spans.iter().enumerate() {
        (out[query].max, out[query].sum) = exponentials(s, &mut scores[query], begin, end);
    }

    let all_begin = spans.iter().map(|span| span.0).max().unwrap_or(0);
    let all_end = spans
        .iter()
        .map(|span| span.1)
        .min()
        .unwrap_or(0)
        .max(all_begin);
    for result in &mut out[..Q] {
        result.values.fill(0.0);
    }
    let head_dim = queries.head_dim;
    for query in 0..Q {
        let (begin, end) = spans[query];
        weigh_all::<S, 1, 4>(
            s,
            &scores[query..],
            tiles,
            &mut out[query..],
            (begin, all_begin.min(end)),
            head_dim,
        );
    }
    weigh_all::<S, Q, W>(s, scores, tiles, out, (all_begin, all_end), head_dim);
    for query in 0..Q {
        let (_, end) = spans[query];
        weigh_all::<S, 1, 4>(
            s,
            &scores[query..],
            tiles,
            &mut out[query..],
            (all_end.max(spans[query].0), end),
            head_dim,
        );
    }
}

/// Products of `Q` queries with 16 keys.
#[inline(always)]
fn score_tile<S: Simd, const Q: usize>(
    s: S,
    queries: &QueryTile<'_>,
    keys: &[u16],
    scores: &mut [[f32; CHUNK]],
    position: usize,
) {
    let head_dim = queries.head_dim;
    let rows: [&[f32]; Q] =
        std::array::from_fn(|query| &queries.values[query * head_dim..][..head_dim]);
    let mut sums = [[s.splat(0.0); 2]; Q];
    for (column, keys) in keys
        .as_chunks::<KEY_TILE>()
        .0
        .iter()
        .enumerate()
        .take(head_dim)
    {
        s.prefetch(keys.as_ptr().cast::<u8>().wrapping_add(PREFETCH_BYTES));
        let (halves, _) = keys.as_chunks::<LANES>();
        let keys = [s.load_f16(&halves[0]), s.load_f16(&halves[1])];
        for query in 0..Q {
            let factor = s.splat(rows[query][column]);
            for half in 0..2 {
                sums[query][half] = s.mul_add(factor, keys[half], sums[query][half]);
            }
        }
    }
    for query in 0..Q {
        let (halves, _) = scores[query][position..position + KEY_TILE].as_chunks_mut::<LANES>();
        s.store(sums[query][0], &mut halves[0]);
        s.store(sums[query][1], &mut halves[1]);
    }
}

/// Replaces the scores `begin..end` by e^(score - max); returns max and sum.
#[inline(always)]
fn exponentials<S: Simd>(s: S, scores: &mut [f32; CHUNK], begin: usize, end: usize) -> (f32, f32) {
    let (low, high) = (begin / LANES, end.div_ceil(LANES));
    scores[low * LANES..begin].fill(f32::NEG_INFINITY);
    scores[end..high * LANES].fill(f32::NEG_INFINITY);
    let vectors = &mut scores.as_chunks_mut::<LANES>().0[low..high];
    let mut max = s.splat(f32::NEG_INFINITY);
    for vector in vectors.iter() {
        max = s.max(max, s.load(vector));
    }
    let max = s.largest(max);
    let origin = s.splat(max);
    for vector in vectors.iter_mut() {
        let power = math::exp(s, s.sub(s.load(vector), origin));
        s.store(power, vector);
    }
    scores[low * LANES..begin].fill(0.0);
    scores[end..high * LANES].fill(0.0);
    let mut sum = s.splat(0.0);
    for vector in &scores.as_chunks::<LANES>().0[low..high] {
        sum = s.add(sum, s.load(vector));
    }
    (max, s.sum(sum))
}

/// Adds weight times value over a span of positions for `Q` queries, all columns.
#[inline(always)]
fn weigh_all<S: Simd, const Q: usize, const W: usize>(
    s: S,
    weights: &[[f32; CHUNK]],
    tiles: &[KvTile<'_>],
    out: &mut [ChunkResult<'_>],
    span: (usize, usize),
    head_dim: usize,
) {
    if span.0 >= span.1 {
        return;
    }
    let mut column = 0;
    while column + W * LANES <= head_dim {
        weigh::<S, Q, W>(s, weights, tiles, out, span, head_dim, column);
        column += W * LANES;
    }
    while column < head_dim {
        weigh::<S, Q, 1>(s, weights, tiles, out, span, head_dim, column);
        column += LANES;
    }
}

/// [`weigh_all`] for `W` vectors of columns from `column` on.
#[inline(always)]
fn weigh<S: Simd, const Q: usize, const W: usize>(
    s: S,
    weights: &[[f32; CHUNK]],
    tiles: &[KvTile<'_>],
    out: &mut [ChunkResult<'_>],
    span: (usize, usize),
    head_dim: usize,
    column: usize,
) {
    let columns = column..column + W * LANES;
    let mut sums = [[s.splat(0.0); W]; Q];
    for query in 0..Q {
        let (vectors, _) = out[query].values[columns.clone()].as_chunks::<LANES>();
        for i in 0..W {
            sums[query][i] = s.load(&vectors[i]);
        }
    }
    for tile in span.0 / KEY_TILE..span.1.div_ceil(KEY_TILE) {
        let first = tile * KEY_TILE;
        let (begin, end) = (
            span.0.max(first) - first,
            span.1.min(first + KEY_TILE) - first,
        );
        let mut tile_weights = [[0.0; KEY_TILE]; Q];
        for query in 0..Q {
            tile_weights[query] = weights[query].as_chunks().0[tile];
        }
        let rows = tiles[tile].values.chunks_exact(head_dim);
        for (position, row) in rows.enumerate().take(end).skip(begin) {
            let row = &row[columns.clone()];
            s.prefetch(row.as_ptr().cast::<u8>().wrapping_add(PREFETCH_BYTES));
            let (vectors, _) = row.as_chunks::<LANES>();
            let mut values = [s.splat(0.0); W];
            for i in 0..W {
                values[i] = s.load_f16(&vectors[i]);
            }
            for query in 0..Q {
                let weight = s.splat(tile_weights[query][position]);
                for i in 0..W {
                    sums[query][i] = s.mul_add(weight, values[i], sums[query][i]);
                }
            }
        }
    }
    for query in 0..Q {
        let (vectors, _) = out[query].values[columns.clone()].as_chunks_mut::<LANES>();
        for i in 0..W {
            s.store(sums[query][i], &mut vectors[i]);
        }
    }
}

pub(super) struct Fold<'a, 'b> {
    pub(super) state: &'a mut SoftmaxState<'b>,
    pub(super) chunk: &'a ChunkResult<'a>,
}

impl Op for Fold<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let Fold { state, chunk } = self;
        let max = if state.max > chunk.max {
            state.max
        } else {
            chunk.max
        };
        let kept = weight(s, state.max - max);
        let added = weight(s, chunk.max - max);
        state.max = max;
        state.sum = state.sum * kept + chunk.sum * added;
        let (kept, added) = (s.splat(kept), s.splat(added));
        let vectors = state
            .values
            .as_chunks_mut::<LANES>()
            .0
            .iter_mut()
            .zip(chunk.values.as_chunks::<LANES>().0);
        for (values, more) in vectors {
            s.store(
                s.mul_add(s.load(more), added, s.mul(s.load(values), kept)),
                values,
            );
        }
    }
}

/// e^x of one number. Not a closure: those are not always inlined, and then their vectors are slow.
#[inline(always)]
fn weight<S: Simd>(s: S, x: f32) -> f32 {
    let mut lanes = [0.0; LANES];
    s.store(math::exp(s, s.splat(x)), &mut lanes);
    lanes[0]
}

pub(super) struct Finish<'a, 'b> {
    pub(super) state: &'a SoftmaxState<'b>,
    pub(super) out: &'a mut [f32],
}

impl Op for Finish<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        let factor = s.splat(1.0 / self.state.sum);
        for (values, out) in self
            .state
            .values
            .as_chunks::<LANES>()
            .0
            .iter()
            .zip(self.out.as_chunks_mut::<LANES>().0)
        {
            s.store(s.mul(s.load(values), factor), out);
        }
    }
}
