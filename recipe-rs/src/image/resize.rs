//! The size that an image has for the model, and its number of positions.

use crate::error::{Error, Result};

/// Side of one patch in pixels; every fitted side is a multiple of it.
const PATCH: u64 = 14;
/// Side of one position in pixels: 3 x 3 patches are merged.
const CELL: u64 = 3 * PATCH;
/// Most positions of one image, row ends and both delimiters included.
const MAX_TOKENS: u64 = 1024;
/// Smaller areas are enlarged to about this many pixels: 544 x 544.
const MIN_PIXELS: u64 = 544 * 544;
/// Steps after which a size counts as not settling; real sizes take at most 8.
const MAX_STEPS: usize = 64;
/// Longest side that a WEBP file can have, rounded down to whole patches.
const MAX_FILE_SIDE: u64 = 16_383 / PATCH * PATCH;

/// Width and height of an image in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageSize {
    /// Pixels of a row.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
}

impl ImageSize {
    /// The size for the model: multiples of 14, at most 1,024 positions.
    ///
    /// # Errors
    /// [`Error::ImageSize`] when repeated fitting does not settle.
    pub fn fitted(self) -> Result<Self> {
        self.repeat(fit)
    }

    /// The fitted size of an image that is stored as a file, whose sides the format limits to
    /// 16,383 pixels.
    ///
    /// # Errors
    /// [`Error::ImageSize`] when repeated fitting does not settle.
    pub fn fitted_for_file(self) -> Result<Self> {
        self.repeat(|size| limit_side(fit(size)))
    }

    /// Positions of an image of this size: a row end after each row, and two delimiters.
    #[must_use]
    pub fn num_tokens(self) -> u64 {
        num_tokens(u64::from(self.width), u64::from(self.height))
    }

    /// The size after its longer side is reduced to `max_side`, with sides of at least 1 pixel.
    #[must_use]
    pub fn limited_to(self, max_side: u32) -> Self {
        let longer = self.width.max(self.height);
        if longer <= max_side {
            return self;
        }
        // Halves are rounded up.
        let scale = |side: u32| {
            let doubled = 2 * u64::from(side) * u64::from(max_side) + u64::from(longer);
            (doubled / (2 * u64::from(longer))).max(1) as u32
        };
        Self {
            width: scale(self.width),
            height: scale(self.height),
        }
    }

    fn repeat(self, step: impl Fn((u64, u64)) -> (u64, u64)) -> Result<Self> {
        let mut size = (u64::from(self.width), u64::from(self.height));
        for _ in 0..MAX_STEPS {
            let next = step(size);
            if next == size {
                return Ok(Self {
                    width: size.0 as u32,
                    height: size.1 as u32,
                });
            }
            size = next;
        }
        Err(Error::ImageSize {
            width: self.width,
            height: self.height,
        })
    }
}

fn num_tokens(width: u64, height: u64) -> u64 {
    height.div_ceil(CELL) * (width.div_ceil(CELL) + 1) + 2
}

/// One step of fitting. Roots and quotients are f64, as the model's maker computes them.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "the rule is defined on f64 with truncation; all values are positive"
)]
fn fit((mut width, mut height): (u64, u64)) -> (u64, u64) {
    let area = width * height;
    if 0 < area && area < MIN_PIXELS {
        let factor = (MIN_PIXELS as f64 / area as f64).sqrt();
        width = (width as f64 * factor) as u64;
        height = (height as f64 * factor) as u64;
    }
    let whole = (
        width.div_ceil(PATCH) * PATCH,
        height.div_ceil(PATCH) * PATCH,
    );
    if num_tokens(whole.0, whole.1) <= MAX_TOKENS {
        return whole;
    }
    // columns * (columns * aspect) + columns = MAX_TOKENS - 2 for a grid of the image's aspect.
    let (w, h) = (width as f64, height as f64);
    let aspect = h / w;
    let columns = ((MAX_TOKENS - 2) as f64 / aspect + 0.25).sqrt() - 0.5;
    let rows = columns * aspect;
    if columns < 1.0 {
        return (CELL, (MAX_TOKENS - 2) / 2 * CELL);
    }
    if rows < 1.0 {
        return ((MAX_TOKENS - 3) * CELL, CELL);
    }
    let cell = CELL as f64;
    let scale = (columns.floor() * cell / w).min(rows.floor() * cell / h);
    let whole_patches = |side: f64| (side * scale / PATCH as f64).floor() as u64 * PATCH;
    (whole_patches(w), whole_patches(h))
}

/// Reduces a size with a side too long for the file format, keeping the aspect.
fn limit_side((width, height): (u64, u64)) -> (u64, u64) {
    let longer = width.max(height);
    if longer <= MAX_FILE_SIDE {
        return (width, height);
    }
    let scale = |side: u64| (side * MAX_FILE_SIDE).div_ceil(longer * PATCH).max(1) * PATCH;
    (scale(width), scale(height))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(width: u32, height: u32) -> ImageSize {
        ImageSize { width, height }
    }

    #[test]
    fn known_sizes() {
        for (given, fitted, tokens) in [
            ((544, 544), (546, 546), 184),
            ((1, 1), (546, 546), 184),
            ((24, 7), (1008, 294), 177),
            ((161, 1), (7056, 42), 171),
            ((1024, 1024), (1036, 1036), 652),
            ((1920, 1080), (1708, 966), 968),
            ((2048, 2048), (1302, 1302), 994),
            ((3000, 3000), (1302, 1302), 994),
            ((4000, 3000), (1512, 1134), 1001),
            ((u32::MAX, 1), (42_882, 42), 1024),
            ((1, u32::MAX), (42, 21_462), 1024),
        ] {
            let result = size(given.0, given.1).fitted().unwrap();
            assert_eq!((result.width, result.height), fitted, "{given:?}");
            assert_eq!(result.num_tokens(), tokens, "{given:?}");
        }
    }

    #[test]
    fn long_strips_fit_into_a_file() {
        for (given, stored) in [
            ((8192, 1), (16_380, 28)),
            ((5000, 1), (16_380, 28)),
            ((400, 1), (10_892, 28)),
            ((1, 8192), (42, 16_380)),
            ((3, 8192), (42, 16_380)),
            ((1920, 1080), (1708, 966)),
        ] {
            let result = size(given.0, given.1).fitted_for_file().unwrap();
            assert_eq!((result.width, result.height), stored, "{given:?}");
        }
    }

    #[test]
    fn low_detail_rounds_halves_up() {
        assert_eq!(size(2000, 1500).limited_to(512), size(512, 384));
        assert_eq!(size(1024, 3).limited_to(512), size(512, 2));
        assert_eq!(size(5000, 1).limited_to(512), size(512, 1));
        assert_eq!(size(5, 5).limited_to(0), size(1, 1));
        assert_eq!(size(512, 7).limited_to(512), size(512, 7));
    }

    proptest! {
        #[test]
        fn fitted_sizes_settle(width in 1u32.., height in 1u32..) {
            let fitted = size(width, height).fitted()?;
            prop_assert!(fitted.num_tokens() <= MAX_TOKENS);
            prop_assert_eq!(fitted.fitted()?, fitted);
            prop_assert!(u64::from(fitted.width) % PATCH == 0 && u64::from(fitted.height) % PATCH == 0);
            let stored = size(width, height).fitted_for_file()?;
            prop_assert!(u64::from(stored.width.max(stored.height)) <= MAX_FILE_SIDE);
            prop_assert_eq!(stored.fitted()?, stored);
        }
    }
}
