//! Which instruction set this process computes with; decided once, when a model is built.

use super::Kernels;
use crate::error::{Error, Result};
use crate::simd::Portable;
use std::sync::Arc;

/// An instruction set that kernels exist for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust.
    Portable,
    /// AVX2 with FMA and F16C.
    Avx2,
}

impl Isa {
    /// The fastest that this processor has.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if crate::simd::Avx2::detect().is_some() {
            return Self::Avx2;
        }
        Self::Portable
    }

    /// The set named `name`, or the fastest for "auto".
    ///
    /// # Errors
    /// [`Error::Shape`] when there is no such set.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::detect()),
            "portable" => Ok(Self::Portable),
            "avx2" => Ok(Self::Avx2),
            _ => Err(Error::shape(
                "instruction_set",
                name,
                "auto, portable or avx2",
            )),
        }
    }

    /// Its name, as [`Isa::from_name`] takes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
        }
    }

    /// Its kernels.
    ///
    /// # Errors
    /// [`Error::Shape`] when this processor does not have it.
    pub(crate) fn kernels(self) -> Result<Arc<dyn Kernels>> {
        match self {
            Self::Portable => Ok(Arc::new(Portable)),
            Self::Avx2 => {
                #[cfg(target_arch = "x86_64")]
                if let Some(avx2) = crate::simd::Avx2::detect() {
                    return Ok(Arc::new(avx2));
                }
                Err(Error::shape(
                    "instruction_set",
                    "avx2",
                    "one that this processor has; use auto",
                ))
            }
        }
    }
}
