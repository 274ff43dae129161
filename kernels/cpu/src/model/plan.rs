//! What one step computes, checked against model and cache before any thread sees it.

use super::{KvCache, ModelShape};
use crate::error::{Error, Result};
use crate::kernels::CHUNK;
use crate::sampling::{SampleSpec, Sampled};
use std::ops::Range;

/// The plan of a step as arrays, one entry for each row or sequence.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepInput<'a> {
    /// Token of each row.
    pub token_ids: &'a [u32],
    /// Where each sequence's rows begin, and the number of rows at the end.
    pub row_starts: &'a [u32],
    /// Position of each sequence's first row; the others follow it.
    pub first_positions: &'a [u32],
    /// Where each sequence's block table begins in `block_ids`, and the length at the end.
    pub table_starts: &'a [u32],
    /// Block tables, one after the other.
    pub block_ids: &'a [u32],
    /// Rows whose logits are wanted.
    pub logit_rows: &'a [u32],
    /// What to choose from those rows.
    pub samples: &'a [SampleSpec],
    /// (source, target) blocks to copy before everything else.
    pub block_copies: &'a [(u32, u32)],
}

/// What one step gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepOutput {
    /// For each logit row the token with the largest logit, the lowest one on ties; `None` where a
    /// logit is not finite.
    pub best: Vec<Option<u32>>,
    /// For each sample its token; `None` where a logit is NaN or infinite, or none is finite.
    pub sampled: Vec<Option<Sampled>>,
}

/// Rows that one sequence adds.
#[derive(Debug, Clone)]
pub(crate) struct SequencePlan {
    pub(crate) rows: Range<usize>,
    pub(crate) first_position: usize,
    pub(crate) block_ids: Vec<u32>,
}

/// One piece of attention: some rows of a sequence, one KV head, some chunks of 256 positions.
#[derive(Debug, Clone)]
pub(crate) struct AttentionItem {
    pub(crate) sequence: usize,
    pub(crate) rows: Range<usize>,
    pub(crate) kv_head: usize,
    pub(crate) chunks: Range<usize>,
    /// Where the results of a single row go when its chunks are spread over several items.
    pub(crate) partial: Option<usize>,
}

/// Where the chunk results of a row lie: `first + head * num_chunks + chunk`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partials {
    pub(crate) first: usize,
    pub(crate) num_chunks: usize,
}

/// A checked plan.
#[derive(Debug)]
pub(crate) struct StepPlan {
    pub(crate) token_ids: Vec<u32>,
    pub(crate) sequences: Vec<SequencePlan>,
    /// Sequence of each row.
    pub(crate) sequence_of: Vec<usize>,
    pub(crate) logit_rows: Vec<usize>,
    pub(crate) samples: Vec<SampleSpec>,
    /// For each logit row whether a sample needs its logits.
    pub(crate) is_sampled: Vec<bool>,
    pub(crate) attention: Vec<AttentionItem>,
    /// For each row, where to find its chunk results, if they are spread.
    pub(crate) partials: Vec<Option<Partials>>,
    pub(crate) num_partials: usize,
}

/// A sequence with at most this many rows spreads the chunks of each row over threads.
const SPREAD_ROWS: usize = 4;
/// Rows of one attention item of a longer prefill.
pub(crate) const ATTENTION_ROWS: usize = 16;

impl StepPlan {
    /// Checks a plan.
    ///
    /// # Errors
    /// [`Error::Plan`] with the array and entry at fault.
    pub(crate) fn new(input: &StepInput<'_>, shape: &ModelShape, cache: &KvCache) -> Result<Self> {
        let num_rows = input.token_ids.len();
        let num_sequences = input.first_positions.len();
        check_starts("row_starts", input.row_starts, num_sequences, num_rows, 1)?;
        check_starts(
            "table_starts",
            input.table_starts,
            num_sequences,
            input.block_ids.len(),
            1,
        )?;
        check_below("token_ids", input.token_ids, shape.vocab_size)?;
        check_below("block_ids", input.block_ids, cache.num_blocks())?;
        check_below("logit_rows", input.logit_rows, num_rows)?;
        let mut is_sampled = vec![false; input.logit_rows.len()];
        for (index, sample) in input.samples.iter().enumerate() {
            sample.check(index, is_sampled.len(), shape.vocab_size)?;
            is_sampled[sample.logit_row as usize] = true;
        }

        let mut plan = Self {
            token_ids: input.token_ids.to_vec(),
            sequences: Vec::with_capacity(num_sequences),
            sequence_of: Vec::with_capacity(num_rows),
            logit_rows: input.logit_rows.iter().map(|row| *row as usize).collect(),
            samples: input.samples.to_vec(),
            is_sampled,
            attention: Vec::new(),
            partials: vec![None; num_rows],
            num_partials: 0,
        };
        for index in 0..num_sequences {
            let range = |starts: &[u32]| starts[index] as usize..starts[index + 1] as usize;
            let rows = range(input.row_starts);
            let sequence = SequencePlan {
                first_position: input.first_positions[index] as usize,
                block_ids: input.block_ids[range(input.table_starts)].to_vec(),
                rows: rows.clone(),
            };
            let capacity = sequence.block_ids.len() * cache.block_size();
            if sequence.first_position + rows.len() > capacity {
                let num_blocks = sequence.block_ids.len();
                let rule = format!(
                    "such that its {} rows fit into its {num_blocks} blocks of {} positions",
                    rows.len(),
                    cache.block_size()
                );
                return Err(Error::plan(
                    "first_positions",
                    index,
                    input.first_positions[index],
                    rule,
                ));
            }
            plan.sequence_of
                .extend(std::iter::repeat_n(index, rows.len()));
            plan.add_attention(index, &sequence, shape);
            plan.sequences.push(sequence);
        }
        plan.check_writers(cache.block_size())?;
        Ok(plan)
    }

    /// Rows of the step.
    pub(crate) fn num_rows(&self) -> usize {
        self.token_ids.len()
    }

    /// Position of a row.
    pub(crate) fn position(&self, row: usize) -> usize {
        let sequence = &self.sequences[self.sequence_of[row]];
        sequence.first_position + (row - sequence.rows.start)
    }

    fn add_attention(&mut self, index: usize, sequence: &SequencePlan, shape: &ModelShape) {
        let group_size = shape.group_size();
        let position_of = |row: usize| sequence.first_position + (row - sequence.rows.start);
        let chunks_of = |rows: &Range<usize>| {
            shape.first_visible(position_of(rows.start)) / CHUNK
                ..position_of(rows.end - 1) / CHUNK + 1
        };
        let rows_per_item = if sequence.rows.len() <= SPREAD_ROWS {
            1
        } else {
            ATTENTION_ROWS
        };
        for start in sequence.rows.clone().step_by(rows_per_item) {
            let rows = start..(start + rows_per_item).min(sequence.rows.end);
            let chunks = chunks_of(&rows);
            let is_spread = rows_per_item == 1 && chunks.len() > 1;
            if is_spread {
                self.partials[start] = Some(Partials {
                    first: self.num_partials,
                    num_chunks: chunks.len(),
                });
            }
            for kv_head in 0..shape.num_kv_heads {
                let mut add = |chunks: Range<usize>, partial| {
                    self.attention.push(AttentionItem {
                        sequence: index,
                        rows: rows.clone(),
                        kv_head,
                        chunks,
                        partial,
                    });
                };
                if is_spread {
                    let first = self.num_partials + kv_head * group_size * chunks.len();
                    chunks
                        .clone()
                        .enumerate()
                        .for_each(|(i, chunk)| add(chunk..chunk + 1, Some(first + i)));
                } else {
                    add(chunks.clone(), None);
                }
            }
            if is_spread {
                self.num_partials += shape.num_qo_heads * chunks.len();
            }
        }
    }

    /// No block may be written by two sequences: their threads would race.
    fn check_writers(&self, block_size: usize) -> Result<()> {
        let mut written: Vec<u32> = Vec::new();
        for sequence in &self.sequences {
            let last = sequence.first_position + sequence.rows.len() - 1;
            written.extend(
                &sequence.block_ids[sequence.first_position / block_size..=last / block_size],
            );
        }
        written.sort_unstable();
        match written.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(()),
            Some(pair) => {
                let index = self
                    .sequences
                    .iter()
                    .flat_map(|sequence| &sequence.block_ids)
                    .position(|id| *id == pair[0]);
                Err(Error::plan(
                    "block_ids",
                    index.unwrap_or(0),
                    pair[0],
                    "written by one sequence and one position only",
                ))
            }
        }
    }
}

/// Starts must be `count + 1` numbers from 0 to `end`, each at least `smallest` above the one before.
fn check_starts(
    field: &'static str,
    starts: &[u32],
    count: usize,
    end: usize,
    smallest: u32,
) -> Result<()> {
    if starts.len() != count + 1 {
        let rule = format!(
            "the last of {} entries, one more than there are sequences",
            count + 1
        );
        return Err(Error::plan(field, starts.len(), 0_u32, rule));
    }
    if starts[0] != 0 {
        return Err(Error::plan(field, 0, starts[0], "0"));
    }
    for (index, pair) in starts.windows(2).enumerate() {
        if pair[1] < pair[0].saturating_add(smallest) {
            return Err(Error::plan(
                field,
                index + 1,
                pair[1],
                format!("at least {}", pair[0].saturating_add(smallest)),
            ));
        }
    }
    if starts[count] as usize != end {
        return Err(Error::plan(
            field,
            count,
            starts[count],
            format!("the number of entries, {end}"),
        ));
    }
    Ok(())
}

fn check_below(field: &'static str, values: &[u32], limit: usize) -> Result<()> {
    match values.iter().position(|value| *value as usize >= limit) {
        None => Ok(()),
        Some(index) => Err(Error::plan(
            field,
            index,
            values[index],
            format!("below {limit}"),
        )),
    }
}
