//! Resampling of decoded images and their placement on the model's canvas.

use ::image::RgbImage;
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{
    CreateFilterError, Filter, FilterType, ImageBufferError, PixelType, ResizeAlg, ResizeError,
    ResizeOptions, Resizer,
};

use crate::image::resize::ImageSize;

/// Grey of the canvas that an image does not cover.
const PADDING: u8 = 127;

/// Why an image could not be resampled.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResampleError {
    #[error(transparent)]
    Buffer(#[from] ImageBufferError),
    #[error(transparent)]
    Filter(#[from] CreateFilterError),
    #[error(transparent)]
    Resize(#[from] ResizeError),
}

/// Where an image lies on its canvas.
#[derive(Debug, PartialEq, Eq)]
struct Placement {
    x: u32,
    y: u32,
    size: ImageSize,
}

/// Scales `image` into a canvas of `size`, keeping its aspect, centred, the rest grey.
pub(super) fn scale_onto_canvas(
    image: &RgbImage,
    size: ImageSize,
) -> Result<RgbImage, ResampleError> {
    let from = ImageSize {
        width: image.width(),
        height: image.height(),
    };
    let placement = place(from, size);
    let scaled = scale(image, placement.size)?;
    if placement.size == size {
        return Ok(scaled);
    }
    let mut canvas = RgbImage::from_pixel(size.width, size.height, ::image::Rgb([PADDING; 3]));
    let (x, y) = (i64::from(placement.x), i64::from(placement.y));
    ::image::imageops::replace(&mut canvas, &scaled, x, y);
    Ok(canvas)
}

/// Cubic interpolation over 4 x 4 pixels, whatever the scale: what the model saw in training.
fn scale(image: &RgbImage, size: ImageSize) -> Result<RgbImage, ResampleError> {
    if image.dimensions() == (size.width, size.height) {
        return Ok(image.clone());
    }
    let source = ImageRef::new(
        image.width(),
        image.height(),
        image.as_raw(),
        PixelType::U8x3,
    )?;
    let mut target = Image::new(size.width, size.height, PixelType::U8x3);
    let filter = FilterType::Custom(Filter::new("cubic", cubic, 2.0)?);
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Interpolation(filter));
    Resizer::new().resize(&source, &mut target, &options)?;
    let mut scaled = RgbImage::new(size.width, size.height);
    scaled.copy_from_slice(target.buffer());
    Ok(scaled)
}

/// Keys' cubic convolution kernel with the parameter -3/4.
fn cubic(x: f64) -> f64 {
    const A: f64 = -0.75;
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((x - 5.0) * x + 8.0) * x * A - 4.0 * A
    } else {
        0.0
    }
}

/// The largest place of the aspect of `image` on `canvas`; halves round to even.
#[expect(clippy::cast_sign_loss, reason = "sides are positive")]
fn place(image: ImageSize, canvas: ImageSize) -> Placement {
    let (width, height) = (f64::from(image.width), f64::from(image.height));
    let (full_width, full_height) = (f64::from(canvas.width), f64::from(canvas.height));
    let whole = |length: f64, limit: u32| (length.round_ties_even() as u32).clamp(1, limit);
    let mut size = canvas;
    if width / height > full_width / full_height {
        size.height = whole(height / width * full_width, canvas.height);
    } else {
        size.width = whole(width / height * full_height, canvas.width);
    }
    let margin = |full: u32, part: u32| (f64::from(full - part) / 2.0).round_ties_even() as u32;
    Placement {
        x: margin(canvas.width, size.width),
        y: margin(canvas.height, size.height),
        size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(width: u32, height: u32) -> ImageSize {
        ImageSize { width, height }
    }

    #[test]
    fn places_keep_the_aspect() {
        for (image, canvas, x, y, inner) in [
            ((100, 60), (714, 434), 0, 3, (714, 428)),
            ((1080, 1920), (966, 1708), 2, 0, (961, 1708)),
            ((1842, 1935), (1260, 1316), 4, 0, (1253, 1316)),
            ((1301, 126), (1750, 182), 0, 6, (1750, 169)),
            ((161, 1), (7056, 42), 147, 0, (6762, 42)),
            ((24, 7), (1008, 294), 0, 0, (1008, 294)),
        ] {
            let expected = Placement {
                x,
                y,
                size: size(inner.0, inner.1),
            };
            let placed = place(size(image.0, image.1), size(canvas.0, canvas.1));
            assert_eq!(placed, expected, "{image:?} on {canvas:?}");
        }
    }

    #[test]
    fn one_colour_stays_itself_and_the_rest_is_grey() {
        let image = RgbImage::from_pixel(100, 60, ::image::Rgb([200, 10, 30]));
        let canvas = scale_onto_canvas(&image, size(714, 434)).unwrap();
        assert_eq!(canvas.get_pixel(0, 2).0, [PADDING; 3]);
        assert_eq!(canvas.get_pixel(713, 431).0, [PADDING; 3]);
        assert_eq!(canvas.get_pixel(0, 3).0, [200, 10, 30]);
        assert_eq!(canvas.get_pixel(713, 430).0, [200, 10, 30]);
    }
}
