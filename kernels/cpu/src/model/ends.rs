//! The first and the last phases of a step: embeddings, output head, samples.
//!
//! Safety of the shared buffers: as in [`super::phases`].

#![expect(unsafe_code, reason = "items write disjoint parts of shared buffers")]

use super::Phase;
use super::input::Input;
use super::phases::norm;
use super::step::{Walk, num_head_items};
use super::workspace::{BestSlot, GROUPS_AT_A_TIME, ROW_BLOCK};
use crate::format::GROUP;
use crate::kernels::Best;
use crate::sampling::{SampleSpec, sample};
use crate::threads::{Broken, share};
use std::ops::Range;

impl Walk<'_> {
    /// Residual stream from the token ids, and the angles of every position.
    pub(super) fn embed(&mut self) -> Result<(), Broken> {
        let step = self.step;
        let (shape, ws) = (&step.weights.shape, &*step.workspace);
        let (hidden, half) = (shape.hidden_size, shape.head_dim / 2);
        self.phase(Phase::Embed, step.plan.num_rows(), |row| {
            // SAFETY: an item is a row, see the module.
            let (x, cosines, sines) = unsafe {
                let angles = row * half..(row + 1) * half;
                let x = ws.x.get_mut(row * hidden..(row + 1) * hidden);
                (
                    x,
                    ws.cosines.get_mut(angles.clone()),
                    ws.sines.get_mut(angles),
                )
            };
            step.kernels.read_row(
                &step.weights.embed_tokens,
                step.plan.token_ids[row] as usize,
                x,
            );
            #[expect(
                clippy::cast_precision_loss,
                reason = "reference models form the angle in single precision too"
            )]
            let position = step.plan.position(row) as f32;
            for (frequency, (cosine, sine)) in shape
                .rotary_frequencies
                .iter()
                .zip(cosines.iter_mut().zip(sines))
            {
                let (exact_sine, exact_cosine) = f64::from(position * frequency).sin_cos();
                (*cosine, *sine) = (exact_cosine as f32, exact_sine as f32);
            }
        })
    }

    /// Final norm and output head of some wanted rows: best logits, and full rows where asked for.
    pub(super) fn head(&mut self, pass: &Range<usize>) -> Result<(), Broken> {
        let step = self.step;
        let ws = &*step.workspace;
        let thread = self.thread;
        let (num_rows, all_rows) = (pass.len(), step.plan.logit_rows.len());
        let norm = norm(step, thread, &step.weights.final_norm, |row| {
            step.plan.logit_rows[pass.start + row]
        });
        let input = Input::new(self, &ws.hidden, &ws.scratch[thread].hidden, num_rows, norm)?;
        let matrix = step.weights.head();
        let vocab_size = step.weights.shape.vocab_size;
        let num_items = num_head_items(matrix.num_groups(), step.num_threads);
        self.phase(Phase::Head, num_items, |item| {
            let slots = item * all_rows + pass.start..item * all_rows + pass.end;
            // SAFETY: each item has slots of its own.
            let slots = unsafe { ws.best.get_mut(slots) };
            slots.fill(BestSlot::from(Best::NONE));
            let groups = share(matrix.num_groups(), num_items, item);
            for first in groups.clone().step_by(GROUPS_AT_A_TIME) {
                let groups = first..(first + GROUPS_AT_A_TIME).min(groups.end);
                let (columns, first_token) = (groups.len() * GROUP, groups.start * GROUP);
                let num_tokens = columns.min(matrix.rows() - first_token);
                for first_row in (0..num_rows).step_by(ROW_BLOCK) {
                    let rows = first_row..(first_row + ROW_BLOCK).min(num_rows);
                    // SAFETY: scratch is this thread's own.
                    let tile = unsafe { ws.scratch[thread].tile.get_mut(0..rows.len() * columns) };
                    step.linear(
                        matrix,
                        groups.clone(),
                        input.view(rows.clone()),
                        tile,
                        thread,
                    );
                    for (row, logits) in rows.zip(tile.chunks_exact(columns)) {
                        let logits = &logits[..num_tokens];
                        let best = step.kernels.argmax(logits);
                        let best = Best {
                            index: best.index + first_token,
                            ..best
                        };
                        slots[row] = BestSlot::from(Best::from(slots[row]).join(best));
                        if pass.start + row < step.logits.num_rows() {
                            // SAFETY: one item computes these logits of this row.
                            unsafe { step.logits.store(pass.start + row, first_token, logits) }
                        }
                        if step.plan.is_sampled[pass.start + row] {
                            let start = row * vocab_size + first_token;
                            // SAFETY: as above.
                            unsafe { ws.kept_logits.get_mut(start..start + num_tokens) }
                                .copy_from_slice(logits);
                        }
                    }
                }
            }
        })
    }

    /// Samples from the logits of a pass.
    pub(super) fn sample(&mut self, pass: &Range<usize>) -> Result<(), Broken> {
        let step = self.step;
        let vocab_size = step.weights.shape.vocab_size;
        let is_here = |spec: &SampleSpec| pass.contains(&(spec.logit_row as usize));
        let samples: Vec<_> = step
            .plan
            .samples
            .iter()
            .enumerate()
            .filter(|(_, spec)| is_here(spec))
            .collect();
        self.phase(Phase::Sample, samples.len(), |item| {
            let (index, spec) = samples[item];
            let start = (spec.logit_row as usize - pass.start) * vocab_size;
            // SAFETY: the logits of this pass are complete, and the next pass comes after this phase.
            let logits = unsafe { step.workspace.kept_logits.get(start..start + vocab_size) };
            step.keep(index, sample(&*step.kernels, logits, spec));
        })
    }
}
