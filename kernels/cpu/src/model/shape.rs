//! The shape of a Llama-type transformer.

use crate::error::{Error, Result};
use crate::format::BLOCK;
use crate::kernels::KEY_TILE;

/// Shape of a decoder with RMS norms, rotary positions, grouped queries and `SwiGLU`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelShape {
    /// Tokens.
    pub vocab_size: usize,
    /// Width of the residual stream; a multiple of 32.
    pub hidden_size: usize,
    /// Width of the feed-forward layer; a multiple of 32.
    pub intermediate_size: usize,
    /// Layers.
    pub num_layers: usize,
    /// Query heads.
    pub num_qo_heads: usize,
    /// Key and value heads; they divide the query heads.
    pub num_kv_heads: usize,
    /// Width of a head; a multiple of 16.
    pub head_dim: usize,
    /// Added to the mean square in norms.
    pub rms_norm_eps: f32,
    /// Angle per position of each pair (i, i + `head_dim` / 2): `head_dim` / 2 numbers.
    pub rotary_frequencies: Vec<f32>,
    /// Positions that a query sees, itself among them; `None` for all.
    pub sliding_window: Option<usize>,
}

impl ModelShape {
    /// Checks that kernels exist for this shape.
    ///
    /// # Errors
    /// [`Error::Shape`] with the field at fault.
    pub fn check(&self) -> Result<()> {
        let multiple = |field, value: usize, unit: usize| {
            let is_good = value > 0 && value.is_multiple_of(unit) && u32::try_from(value).is_ok();
            is_good
                .then_some(())
                .ok_or_else(|| Error::shape(field, value, format!("a positive multiple of {unit}")))
        };
        multiple("vocab_size", self.vocab_size, 1)?;
        multiple("hidden_size", self.hidden_size, BLOCK)?;
        multiple("intermediate_size", self.intermediate_size, BLOCK)?;
        multiple("num_layers", self.num_layers, 1)?;
        multiple("num_kv_heads", self.num_kv_heads, 1)?;
        multiple("num_qo_heads", self.num_qo_heads, self.num_kv_heads)?;
        multiple("head_dim", self.head_dim, KEY_TILE)?;
        multiple("num_qo_heads * head_dim", self.attention_size(), BLOCK)?;
        if self.rotary_frequencies.len() != self.head_dim / 2 {
            let rule = format!("as many as half of head_dim, {}", self.head_dim / 2);
            return Err(Error::shape(
                "number of rotary_frequencies",
                self.rotary_frequencies.len(),
                rule,
            ));
        }
        if let Some(frequency) = self
            .rotary_frequencies
            .iter()
            .find(|frequency| !frequency.is_finite())
        {
            return Err(Error::shape("rotary_frequencies", frequency, "finite"));
        }
        if !(self.rms_norm_eps >= 0.0 && self.rms_norm_eps.is_finite()) {
            return Err(Error::shape(
                "rms_norm_eps",
                self.rms_norm_eps,
                "a finite number >= 0",
            ));
        }
        if self.sliding_window == Some(0) {
            return Err(Error::shape("sliding_window", 0, "at least 1, or none"));
        }
        Ok(())
    }

    /// Width of all query heads together.
    pub(crate) fn attention_size(&self) -> usize {
        self.num_qo_heads * self.head_dim
    }

    /// Query heads that share one key and value head.
    pub(crate) fn group_size(&self) -> usize {
        self.num_qo_heads / self.num_kv_heads
    }

    /// First position that a query at `position` sees.
    pub(crate) fn first_visible(&self, position: usize) -> usize {
        self.sliding_window
            .map_or(0, |window| (position + 1).saturating_sub(window))
    }
}
