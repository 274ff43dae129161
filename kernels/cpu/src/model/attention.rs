//! The attention phase of a layer.

#![expect(unsafe_code, reason = "items write disjoint parts of shared buffers")]

use super::Phase;
use super::kv::Slab;
use super::plan::{AttentionItem, Partials};
use super::step::{Step, Walk};
use crate::kernels::{
    CHUNK, ChunkResult, KEY_TILE, MAX_QUERIES, QueryTile, SoftmaxState, Tiles, attend_scratch,
};
use crate::threads::Broken;
use std::ops::Range;

impl Walk<'_> {
    /// Attention of every row over the positions before it and its own.
    pub(super) fn attention(&mut self, layer: usize) -> Result<(), Broken> {
        let (step, thread) = (self.step, self.thread);
        let items = &step.plan.attention;
        self.phase(Phase::Attention, items.len(), |item| {
            step.attend_item(layer, &items[item], thread);
        })
    }
}

/// Softmax so far of each query of an item.
#[derive(Clone, Copy)]
struct Progress {
    max: f32,
    sum: f32,
}

impl Step {
    /// Queries `[row][head of the group]`, chunk after chunk.
    fn attend_item(&self, layer: usize, item: &AttentionItem, thread: usize) {
        let shape = &self.weights.shape;
        let (head_dim, group_size) = (shape.head_dim, shape.group_size());
        let scratch = &self.workspace.scratch[thread];
        let num_queries = item.rows.len() * group_size;
        // SAFETY: scratch is this thread's own.
        let (queries, state) = unsafe {
            (
                scratch.queries.get_mut(0..num_queries * head_dim),
                scratch.state.get_mut(0..num_queries * head_dim),
            )
        };
        let row_len = group_size * head_dim;
        for (row, target) in item.rows.clone().zip(queries.chunks_exact_mut(row_len)) {
            let start = row * shape.attention_size() + item.kv_head * row_len;
            // SAFETY: queries were written in an earlier phase.
            target.copy_from_slice(unsafe { self.workspace.queries.get(start..start + row_len) });
        }
        state.fill(0.0);
        let mut progress = vec![
            Progress {
                max: f32::NEG_INFINITY,
                sum: 0.0
            };
            num_queries
        ];

        for chunk in item.chunks.clone() {
            let visible = |row: usize| self.visible(row, chunk);
            let Some(first) = item.rows.clone().find(|row| !visible(*row).is_empty()) else {
                continue;
            };
            let seeing = (first..item.rows.end)
                .take_while(|row| !visible(*row).is_empty())
                .count();
            let begin = (first - item.rows.start) * group_size;
            let all = begin..begin + seeing * group_size;
            let places = self.chunk_places(layer, item, chunk);
            let attend = |tiles: Tiles<'_>| {
                for start in all.clone().step_by(MAX_QUERIES) {
                    let some = start..(start + MAX_QUERIES).min(all.end);
                    let spans: Vec<(usize, usize)> = some
                        .clone()
                        .map(|query| visible(item.rows.start + query / group_size))
                        .map(|span| (span.start, span.end))
                        .collect();
                    let columns = some.start * head_dim..some.end * head_dim;
                    let tile = QueryTile {
                        values: &queries[columns.clone()],
                        head_dim,
                        spans: &spans,
                    };
                    let (state, progress) = (&mut state[columns], &mut progress[some.clone()]);
                    match item.partial {
                        Some(partial) => {
                            let first = partial + some.start * self.num_chunks(item);
                            self.attend_to_partials(&tile, tiles, first, item, thread);
                        }
                        None => self.attend_and_fold(&tile, tiles, state, progress, thread),
                    }
                }
            };
            // SAFETY: the cache is not written in this phase.
            unsafe { self.cache.with_tiles(places, attend) }
        }
        if item.partial.is_none() {
            self.store_attended(item, state, &progress);
        }
    }

    fn num_chunks(&self, item: &AttentionItem) -> usize {
        self.plan.partials[item.rows.start].map_or(1, |partials| partials.num_chunks)
    }

    /// Positions of a chunk that a row sees, counted from the chunk's start.
    fn visible(&self, row: usize, chunk: usize) -> Range<usize> {
        let position = self.plan.position(row);
        let start = chunk * CHUNK;
        let begin = self
            .weights
            .shape
            .first_visible(position)
            .clamp(start, start + CHUNK);
        let end = (position + 1).clamp(start, start + CHUNK);
        begin - start..end.max(begin) - start
    }

    /// Where the keys and values of a chunk lie, as far as the item's last row reaches.
    fn chunk_places(
        &self,
        layer: usize,
        item: &AttentionItem,
        chunk: usize,
    ) -> impl Iterator<Item = (Slab, usize)> {
        let sequence = &self.plan.sequences[item.sequence];
        let (cache, kv_head) = (&self.cache, item.kv_head);
        let start = chunk * CHUNK;
        let end = (self.plan.position(item.rows.end - 1) + 1).min(start + CHUNK);
        (start..end).step_by(KEY_TILE).map(move |position| {
            let block = sequence.block_ids[position / cache.block_size()];
            (cache.slab(block, layer, kv_head), position)
        })
    }

    fn attend_and_fold(
        &self,
        tile: &QueryTile<'_>,
        tiles: Tiles<'_>,
        state: &mut [f32],
        progress: &mut [Progress],
        thread: usize,
    ) {
        let head_dim = tile.head_dim;
        let scratch = &self.workspace.scratch[thread];
        // SAFETY: scratch is this thread's own.
        let (scores, values) = unsafe {
            (
                scratch.attend.get_mut(0..attend_scratch(head_dim)),
                scratch.chunk.get_mut(0..tile.spans.len() * head_dim),
            )
        };
        let mut results: Vec<ChunkResult<'_>> = values
            .chunks_exact_mut(head_dim)
            .map(|values| ChunkResult {
                max: 0.0,
                sum: 0.0,
                values,
            })
            .collect();
        self.kernels.attend(tile, tiles, &mut results, scores);
        for ((result, progress), values) in results
            .iter()
            .zip(progress)
            .zip(state.chunks_exact_mut(head_dim))
        {
            let mut state = SoftmaxState {
                max: progress.max,
                sum: progress.sum,
                values,
            };
            self.kernels.fold(&mut state, result);
            *progress = Progress {
                max: state.max,
                sum: state.sum,
            };
        }
    }

    /// Keeps the results of one chunk of one row for the thread that merges them.
    fn attend_to_partials(
        &self,
        tile: &QueryTile<'_>,
        tiles: Tiles<'_>,
        first: usize,
        item: &AttentionItem,
        thread: usize,
    ) {
        let len = tile.head_dim + 2;
        let stride = self.num_chunks(item);
        // SAFETY: scratch is this thread's own.
        let scores = unsafe {
            self.workspace.scratch[thread]
                .attend
                .get_mut(0..attend_scratch(tile.head_dim))
        };
        let mut slots: Vec<&mut [f32]> = (0..tile.spans.len())
            .map(|query| (first + query * stride) * len)
            // SAFETY: one item writes the result of this chunk for this head.
            .map(|start| unsafe { self.workspace.partials.get_mut(start..start + len) })
            .collect();
        let mut results: Vec<ChunkResult<'_>> = slots
            .iter_mut()
            .map(|slot| ChunkResult {
                max: 0.0,
                sum: 0.0,
                values: &mut slot[2..],
            })
            .collect();
        self.kernels.attend(tile, tiles, &mut results, scores);
        let totals: Vec<[f32; 2]> = results
            .iter()
            .map(|result| [result.max, result.sum])
            .collect();
        for (slot, totals) in slots.iter_mut().zip(totals) {
            slot[..2].copy_from_slice(&totals);
        }
    }

    fn store_attended(&self, item: &AttentionItem, state: &mut [f32], progress: &[Progress]) {
        let shape = &self.weights.shape;
        let group_size = shape.group_size();
        for (query, (values, progress)) in state
            .chunks_exact_mut(shape.head_dim)
            .zip(progress)
            .enumerate()
        {
            let (row, head) = (
                item.rows.start + query / group_size,
                item.kv_head * group_size + query % group_size,
            );
            let start = (row * shape.num_qo_heads + head) * shape.head_dim;
            // SAFETY: one item writes this head of this row.
            let out = unsafe {
                self.workspace
                    .attended
                    .get_mut(start..start + shape.head_dim)
            };
            self.kernels.finish(
                &SoftmaxState {
                    max: progress.max,
                    sum: progress.sum,
                    values,
                },
                out,
            );
        }
    }

    /// Attention of a row, merged over its chunks in order where they were spread.
    pub(super) fn merged_attention(&self, row: usize, thread: usize, out: &mut [f32]) {
        let shape = &self.weights.shape;
        let size = shape.attention_size();
        let Some(Partials { first, num_chunks }) = self.plan.partials[row] else {
            // SAFETY: written in the attention phase, which is done.
            out.copy_from_slice(unsafe {
                self.workspace.attended.get(row * size..(row + 1) * size)
            });
            return;
        };
        let len = shape.head_dim + 2;
        // SAFETY: scratch is this thread's own; results were written in the attention phase.
        let (values, partials) = unsafe {
            let partials = first * len..(first + shape.num_qo_heads * num_chunks) * len;
            (
                self.workspace.scratch[thread]
                    .state
                    .get_mut(0..shape.head_dim),
                self.workspace.partials.get(partials),
            )
        };
        let mut chunk_values = vec![0.0; shape.head_dim];
        for (chunks, out) in partials
            .chunks_exact(num_chunks * len)
            .zip(out.chunks_exact_mut(shape.head_dim))
        {
            values.fill(0.0);
            let mut state = SoftmaxState {
                max: f32::NEG_INFINITY,
                sum: 0.0,
                values: &mut *values,
            };
            for chunk in chunks.chunks_exact(len) {
                chunk_values.copy_from_slice(&chunk[2..]);
                self.kernels.fold(
                    &mut state,
                    &ChunkResult {
                        max: chunk[0],
                        sum: chunk[1],
                        values: &mut chunk_values,
                    },
                );
            }
            self.kernels.finish(&state, out);
        }
    }
}
