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

/// How keys and values lie in the cache.
pub(crate) trait KvNumber: bytemuck::Pod {
    /// Whether each position has a scale for its key and one for its value.
    const HAS_SCALES: bool;

    /// Widens 8 numbers.
    fn load<S: Simd>(s: S, numbers: &[Self; LANES]) -> S::F32;
}

/// Half precision.
impl KvNumber for u16 {
    const HAS_SCALES: bool = false;

    #[inline(always)]
    fn load<S: Simd>(s: S, numbers: &[Self; LANES]) -> S::F32 {
        s.load_f16(numbers)
    }
}

/// Integers times the scale of their position.
impl KvNumber for i8 {
    const HAS_SCALES: bool = true;

    #[inline(always)]
    fn load<S: Simd>(s: S, numbers: &[Self; LANES]) -> S::F32 {
        s.load_i8(*numbers)
    }
}

/// Keys and values of 16 positions of one KV head.
#[derive(Clone, Copy)]
pub(crate) struct KvTile<'a, N> {
    /// `[head_dim][16]`.
    pub(crate) keys: &'a [N],
    /// `[16][head_dim]`.
    pub(crate) values: &'a [N],
    /// Of the 16 positions, if the numbers have scales; empty otherwise.
    pub(crate) key_scales: &'a [f32],
    pub(crate) value_scales: &'a [f32],
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

pub(super) struct Attend<'a, 'b, N> {
    pub(super) queries: &'a QueryTile<'a>,
    /// Tiles from the chunk's start; at least up to the last position seen.
    pub(super) tiles: &'a [KvTile<'a, N>],
    pub(super) out: &'a mut [ChunkResult<'b>],
    /// [`attend_scratch`] numbers.
    pub(super) scratch: &'a mut [f32],
}

/// Numbers of scratch that attention needs: scores and queries with columns outermost.
pub(crate) const fn attend_scratch(head_dim: usize) -> usize {
    MAX_QUERIES * (CHUNK + head_dim)
}

impl<N: KvNumber> Op for Attend<'_, '_, N> {
    type Output = ();

    #[inline(always)]
    fn call<S: Simd>(self, s: S) {
        match self.queries.spans.len() {
            1 => attend::<S, N, 1, 4>(s, self),
            2 => attend::<S, N, 2, 2>(s, self),
            3 => attend::<S, N, 3, 1>(s, self),
            4 => attend::<S, N, 4, 1>(s, self),
            5 => attend::<S, N, 5, 1>(s, self),
            _ => attend::<S, N, MAX_QUERIES, 1>(s, self),
        }
    }
}

/// `Q` queries, `T` tiles of keys at a time and `2 * T` vectors of value columns: enough independent
/// sums to hide the latency of each, few enough to stay in registers.
#[inline(always)]
fn attend<S: Simd, N: KvNumber, const Q: usize, const T: usize>(s: S, work: Attend<'_, '_, N>) {
    let Attend {
        queries,
        tiles,
        out,
        scratch,
    } = work;
    let head_dim = queries.head_dim;
    let (scores, rest) = scratch.split_at_mut(MAX_QUERIES * CHUNK);
    let (scores, _) = scores.as_chunks_mut::<CHUNK>();
    let columns = &mut rest.as_chunks_mut::<Q>().0[..head_dim];
    for (query, values) in queries.values.chunks_exact(head_dim).enumerate().take(Q) {
        for (column, value) in columns.iter_mut().zip(values) {
            column[query] = *value;
        }
    }

    let spans: [(usize, usize); Q] = std::array::from_fn(|query| queries.spans[query]);
    let first = spans.iter().map(|span| span.0).min().unwrap_or(0) / KEY_TILE;
    let last = spans.iter().map(|span| span.1).max().unwrap_or(0);
    let last = last.div_ceil(KEY_TILE);
    let mut tile = first;
    while tile + T <= last {
        score::<S, N, Q, T>(s, columns, &tiles[tile..tile + T], scores, tile * KEY_TILE);
        tile += T;
    }
    for tile in tile..last {
        score::<S, N, Q, 1>(s, columns, &tiles[tile..=tile], scores, tile * KEY_TILE);
    }
    for (query, &(begin, end)) in spans.iter().enumerate() {
        (out[query].max, out[query].sum) = exponentials(s, &mut scores[query], begin, end);
        out[query].values.fill(0.0);
        if N::HAS_SCALES {
            scale_weights(s, &mut scores[query], tiles, begin, end);
        }
    }

    let all_begin = spans.iter().map(|span| span.0).max().unwrap_or(0);
    let all_end = spans.iter().map(|span| span.1).min().unwrap_or(0);
    let all_end = all_end.max(all_begin);
    for query in 0..Q {
        let (begin, end) = spans[query];
        let span = (begin, all_begin.min(end));
        weigh_all::<S, N, 1>(
            s,
            &scores[query..],
            tiles,
            &mut out[query..],
            span,
            head_dim,
        );
    }
    weigh_all::<S, N, Q>(s, scores, tiles, out, (all_begin, all_end), head_dim);
    for query in 0..Q {
        let (begin, end) = spans[query];
        let span = (all_end.max(begin), end);
        weigh_all::<S, N, 1>(
            s,
            &scores[query..],
            tiles,
            &mut out[query..],
            span,
            head_dim,
        );
    }
}

/// Products of `Q` queries, `columns[column][query]`, with the keys of `T` tiles.
#[inline(always)]
fn score<S: Simd, N: KvNumber, const Q: usize, const T: usize>(
    s: S,
    columns: &[[f32; Q]],
    tiles: &[KvTile<'_, N>],
    scores: &mut [[f32; CHUNK]],
    position: usize,
) {
    let keys: [&[[N; KEY_TILE]]; T] =
        std::array::from_fn(|tile| &tiles[tile].keys.as_chunks().0[..columns.len()]);
    let mut sums = [[[s.splat(0.0); 2]; Q]; T];
    for (column, factors) in columns.iter().enumerate() {
        for tile in 0..T {
            let keys = &keys[tile][column];
            s.prefetch(keys.as_ptr().cast::<u8>().wrapping_add(PREFETCH_BYTES));
            let (halves, _) = keys.as_chunks::<LANES>();
            let keys = [N::load(s, &halves[0]), N::load(s, &halves[1])];
            for query in 0..Q {
                let factor = s.splat(factors[query]);
                for half in 0..2 {
                    sums[tile][query][half] =
                        s.mul_add(factor, keys[half], sums[tile][query][half]);
                }
            }
        }
    }
    for tile in 0..T {
        if N::HAS_SCALES {
            let (halves, _) = tiles[tile].key_scales.as_chunks::<LANES>();
            let scales = [s.load(&halves[0]), s.load(&halves[1])];
            for sums in &mut sums[tile] {
                *sums = [s.mul(sums[0], scales[0]), s.mul(sums[1], scales[1])];
            }
        }
        for query in 0..Q {
            let at = position + tile * KEY_TILE;
            let (halves, _) = scores[query][at..at + KEY_TILE].as_chunks_mut::<LANES>();
            s.store(sums[tile][query][0], &mut halves[0]);
            s.store(sums[tile][query][1], &mut halves[1]);
        }
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

/// Multiplies the weights `begin..end` of a query by the scales of their values.
#[inline(always)]
fn scale_weights<S: Simd, N: KvNumber>(
    s: S,
    weights: &mut [f32; CHUNK],
    tiles: &[KvTile<'_, N>],
    begin: usize,
    end: usize,
) {
    let (weights, _) = weights.as_chunks_mut::<KEY_TILE>();
    for tile in begin / KEY_TILE..end.div_ceil(KEY_TILE) {
        let (halves, _) = weights[tile].as_chunks_mut::<LANES>();
        let (scales, _) = tiles[tile].value_scales.as_chunks::<LANES>();
        for (half, scale) in halves.iter_mut().zip(scales) {
            s.store(s.mul(s.load(half), s.load(scale)), half);
        }
    }
}

/// Adds weight times value over a span of positions for `Q` queries, all columns; a tile of values is
/// used up before the next one, so that it comes from the first-level cache.
#[inline(always)]
fn weigh_all<S: Simd, N: KvNumber, const Q: usize>(
    s: S,
    weights: &[[f32; CHUNK]],
    tiles: &[KvTile<'_, N>],
    out: &mut [ChunkResult<'_>],
    span: (usize, usize),
    head_dim: usize,
) {
    if span.0 >= span.1 {
        return;
    }
    for tile in span.0 / KEY_TILE..span.1.div_ceil(KEY_TILE) {
        let first = tile * KEY_TILE;
        let begin = span.0.max(first) - first;
        let end = span.1.min(first + KEY_TILE) - first;
        let values = tiles[tile].values;
        let weights: [&[f32; KEY_TILE]; Q] =
            std::array::from_fn(|query| &weights[query].as_chunks().0[tile]);
        let mut column = 0;
        while column < head_dim {
            column += if Q <= 2 && column + 4 * LANES <= head_dim {
                weigh::<S, N, Q, 4>(s, &weights, values, out, (begin, end), head_dim, column)
            } else {
                weigh::<S, N, Q, 2>(s, &weights, values, out, (begin, end), head_dim, column)
            };
        }
    }
}

/// [`weigh_all`] in one tile for `W` vectors of columns from `column` on; returns their columns.
#[inline(always)]
fn weigh<S: Simd, N: KvNumber, const Q: usize, const W: usize>(
    s: S,
    weights: &[&[f32; KEY_TILE]; Q],
    values: &[N],
    out: &mut [ChunkResult<'_>],
    (begin, end): (usize, usize),
    head_dim: usize,
    column: usize,
) -> usize {
    let columns = column..column + W * LANES;
    let mut sums = [[s.splat(0.0); W]; Q];
    for query in 0..Q {
        let (vectors, _) = out[query].values[columns.clone()].as_chunks::<LANES>();
        for i in 0..W {
            sums[query][i] = s.load(&vectors[i]);
        }
    }
    if (begin, end) == (0, KEY_TILE) {
        for position in 0..KEY_TILE {
            weigh_row(s, &mut sums, weights, values, position, head_dim, column);
        }
    } else {
        for position in begin..end {
            weigh_row(s, &mut sums, weights, values, position, head_dim, column);
        }
    }
    for query in 0..Q {
        let (vectors, _) = out[query].values[columns.clone()].as_chunks_mut::<LANES>();
        for i in 0..W {
            s.store(sums[query][i], &mut vectors[i]);
        }
    }
    W * LANES
}

#[inline(always)]
fn weigh_row<S: Simd, N: KvNumber, const Q: usize, const W: usize>(
    s: S,
    sums: &mut [[S::F32; W]; Q],
    weights: &[&[f32; KEY_TILE]; Q],
    values: &[N],
    position: usize,
    head_dim: usize,
    column: usize,
) {
    let row = &values[position * head_dim + column..][..W * LANES];
    s.prefetch(row.as_ptr().cast::<u8>().wrapping_add(PREFETCH_BYTES));
    let (vectors, _) = row.as_chunks::<LANES>();
    let mut values = [s.splat(0.0); W];
    for i in 0..W {
        values[i] = N::load(s, &vectors[i]);
    }
    for query in 0..Q {
        let weight = s.splat(weights[query][position]);
        for i in 0..W {
            sums[query][i] = s.mul_add(weight, values[i], sums[query][i]);
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
