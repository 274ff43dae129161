//! Reduction of an image by area: each pixel is the mean of what it covers.

use ::image::{Rgb, RgbImage};

use crate::image::resize::ImageSize;

/// Source pixels that one target pixel covers along an axis, with their shares of it.
struct Cover {
    start: usize,
    shares: Vec<f32>,
}

/// Reduces `image` to `size`, which has no longer sides.
pub(super) fn shrink(image: &RgbImage, size: ImageSize) -> RgbImage {
    let columns = covers(image.width(), size.width);
    let rows = covers(image.height(), size.height);
    let mut result = RgbImage::new(size.width, size.height);
    let mut sums = vec![[0.0_f32; 3]; columns.len()];
    for (y, row) in (0..).zip(&rows) {
        sums.fill([0.0; 3]);
        for (source_y, share) in (row.start as u32..).zip(&row.shares) {
            add_row(image, source_y, *share, &columns, &mut sums);
        }
        for (x, sum) in (0..).zip(&sums) {
            result.put_pixel(x, y, Rgb(sum.map(level)));
        }
    }
    result
}

/// Adds a row of the source, reduced along the row, to the sums of a target row.
fn add_row(image: &RgbImage, y: u32, share: f32, columns: &[Cover], sums: &mut [[f32; 3]]) {
    for (column, sum) in columns.iter().zip(sums) {
        for (x, part) in (column.start as u32..).zip(&column.shares) {
            let weight = share * part;
            let Rgb(colour) = image.get_pixel(x, y);
            for (total, value) in sum.iter_mut().zip(colour) {
                *total += weight * f32::from(*value);
            }
        }
    }
}

/// What each of `to` pixels covers of `from` pixels; the shares of each sum up to 1.
#[expect(
    clippy::cast_sign_loss,
    reason = "positions are positive and far below 2^24"
)]
fn covers(from: u32, to: u32) -> Vec<Cover> {
    let scale = f64::from(from) / f64::from(to);
    (0..to)
        .map(|index| {
            let (begin, end) = (f64::from(index) * scale, f64::from(index + 1) * scale);
            let start = begin.floor() as u32;
            let stop = (end.ceil() as u32).min(from).max(start + 1);
            let shares = (start..stop)
                .map(|pixel| {
                    let covered = end.min(f64::from(pixel + 1)) - begin.max(f64::from(pixel));
                    (covered.max(0.0) / scale) as f32
                })
                .collect();
            Cover {
                start: start as usize,
                shares,
            }
        })
        .collect()
}

#[expect(clippy::cast_sign_loss, reason = "a mean of levels is a level")]
fn level(mean: f32) -> u8 {
    mean.round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn halves_are_means() {
        let image = RgbImage::from_fn(4, 2, |x, y| Rgb([(x * 10 + y * 100) as u8; 3]));
        let size = ImageSize {
            width: 2,
            height: 1,
        };
        let pixels: Vec<_> = shrink(&image, size)
            .pixels()
            .map(|pixel| pixel.0[0])
            .collect();
        assert_eq!(pixels, [55, 75]);
    }

    proptest! {
        #[test]
        fn everything_is_covered_once(from in 1u32..3000, part in 1u32..3000) {
            let to = part.min(from);
            let mut total = vec![0.0_f64; from as usize];
            for cover in covers(from, to) {
                let sum: f32 = cover.shares.iter().sum();
                prop_assert!((sum - 1.0).abs() < 1e-4);
                for (pixel, share) in (cover.start..).zip(cover.shares) {
                    total[pixel] += f64::from(share);
                }
            }
            let expected = f64::from(to) / f64::from(from);
            prop_assert!(total.iter().all(|sum| (sum - expected).abs() < 1e-4));
        }
    }
}
