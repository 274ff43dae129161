"""Images of a request: sources, limits, quota, preprocessing."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable

import pytest

from recipe_rs import (
    BytesImageSource,
    CalcResizeError,
    DataUrlImageSource,
    ImageError,
    ImageInfo,
    ImageQuota,
    ImageResolver,
    ImageSource,
    MultiModalData,
    OpenCvImagePreprocessor,
    PreprocessOptions,
    ReqwestImageFetcher,
    UrlImageSource,
)

MakePng = Callable[..., bytes]
MEGABYTE = 1 << 20


def resolver() -> ImageResolver:
    return ImageResolver(ReqwestImageFetcher(), OpenCvImagePreprocessor())


def refusal(*sources: ImageSource) -> ImageError:
    quota = ImageQuota()
    with pytest.raises(ImageError) as error:
        resolver().resolve(list(sources), quota)
    assert (quota.image_count(), quota.byte_size()) == (0, 0)
    return error.value


def data_url(data: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def test_sources_become_images_in_order(png: MakePng) -> None:
    small, large = png(100, 60), png(1024, 1024)
    quota = ImageQuota()
    images = resolver().resolve([BytesImageSource(small), DataUrlImageSource(data_url(large))], quota)
    assert [(image.width, image.height) for image in images.images] == [(714, 434), (1036, 1036)]
    assert all(image.data[:4] == b"RIFF" and image.data[8:16] == b"WEBPVP8L" for image in images.images)
    assert (quota.image_count(), quota.byte_size()) == (2, len(small) + len(large))
    assert images.image_token_adjustment() == (11 * 18 + 2 - 1) + (652 - 1)
    assert not images.is_empty()
    assert MultiModalData().is_empty()


def test_low_detail_is_reduced_first(png: MakePng) -> None:
    image = resolver().resolve([BytesImageSource(png(2000, 1500), "low")], ImageQuota()).images[0]
    assert (image.width, image.height) == (630, 476)
    assert MultiModalData([image]).image_token_adjustment() == 194 - 1


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (BytesImageSource(b""), "EmptyImage"),
        (DataUrlImageSource("data:image/png;base64,"), "EmptyImage"),
        (BytesImageSource(b"BM" + bytes(100)), "UnsupportedMediaType"),
        (DataUrlImageSource("data:image/bmp;base64,QUJD"), "UnsupportedMediaType"),
        (DataUrlImageSource("data:;base64,QUJD"), "UnsupportedMediaType"),
        (DataUrlImageSource("data:image/png;base64,Q*"), "InvalidDataUrl"),
        (DataUrlImageSource("image/png;base64,QUJD"), "InvalidDataUrl"),
        (UrlImageSource("ftp://example.org/a.png"), "InvalidUrl"),
        (UrlImageSource("http://"), "InvalidUrl"),
        (UrlImageSource("http://example.org/" + "x" * 8192), "UrlTooLong"),
        (UrlImageSource("http://127.0.0.1/a.png"), "DestinationRejected"),
        (BytesImageSource(b"\x89PNG\r\n\x1a\n" + bytes(40)), "Decode"),
        (BytesImageSource(b"\xff\xd8\xff" + bytes(40)), "Decode"),
        (BytesImageSource(b"GIF89a" + bytes(40)), "EmptyImage"),
        (BytesImageSource(b"GIF89a\5\0\5\0" + bytes(30)), "Decode"),
        (BytesImageSource(b"RIFF\x20\0\0\0WEBPVP8 " + bytes(40)), "Decode"),
        (BytesImageSource(bytes(32 * MEGABYTE + 1)), "ImageTooLarge"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_refusals_name_kind_and_path(source: ImageSource, kind: str) -> None:
    error = refusal(source)
    assert (error.kind, error.is_retryable) == (kind, False)
    assert str(error).startswith("image[0]: ")
    assert isinstance(error, ValueError)


def test_a_refusal_names_the_path_of_the_request(png: MakePng) -> None:
    good, bad = BytesImageSource(png(9, 9)), BytesImageSource(b"junk", path="messages.0.content[1]")
    assert str(refusal(good, bad)).startswith("messages.0.content[1]: ")
    assert str(refusal(good, BytesImageSource(b"junk"))).startswith("image[1]: ")


def test_sides_beyond_the_limit_are_refused(png: MakePng) -> None:
    assert refusal(BytesImageSource(png(8193, 1))).kind == "ImageDimensionsTooLarge"
    image = resolver().resolve([BytesImageSource(png(8192, 1))], ImageQuota()).images[0]
    assert (image.width, image.height) == (16380, 28)


def test_an_image_that_claims_gigapixels_is_not_decoded(png: MakePng) -> None:
    """The header says 30,000 x 30,000 pixels, 2.7 GB of colours, in a file of a few bytes."""
    data = bytearray(png(1, 1))
    data[16:24] = (30_000).to_bytes(4, "big") * 2
    assert refusal(BytesImageSource(bytes(data))).kind in {"ImageDimensionsTooLarge", "Decode"}


def test_counts_and_sizes_are_limited_over_all_calls_of_a_request(png: MakePng) -> None:
    assert refusal(*[BytesImageSource(b"x")] * 601).kind == "TooManyImages"
    padded = png(9, 9) + bytes(22 * MEGABYTE)
    assert refusal(*[BytesImageSource(padded)] * 3).kind == "TotalSizeTooLarge"
    quota = ImageQuota()
    resolver().resolve([BytesImageSource(padded)] * 2, quota)
    with pytest.raises(ImageError) as error:
        resolver().resolve([BytesImageSource(padded)], quota)
    assert error.value.kind == "TotalSizeTooLarge"
    assert (quota.image_count(), quota.byte_size()) == (2, 2 * len(padded))


def test_one_quota_serves_several_threads(png: MakePng) -> None:
    quota, data = ImageQuota(), png(30, 30)
    threads = [
        threading.Thread(target=lambda: resolver().resolve([BytesImageSource(data)] * 2, quota)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (quota.image_count(), quota.byte_size()) == (8, 8 * len(data))


def test_data_classes_hold_what_they_are_given() -> None:
    info = ImageInfo(b"abc", 1036, 42)
    assert (info.data, info.width, info.height) == (b"abc", 1036, 42)
    assert info == ImageInfo(b"abc", 1036, 42)
    assert info != ImageInfo(b"abc", 1036, 43)
    assert repr(info) == "ImageInfo(<3 bytes>, width=1036, height=42)"
    options = PreprocessOptions("low", 100, 50)
    assert (options.detail, options.max_dimension_px, options.low_detail_max_dimension_px) == ("low", 100, 50)
    with pytest.raises(ValueError, match="detail"):
        PreprocessOptions("tiny", 100, 50)  # type: ignore[arg-type]
    assert issubclass(CalcResizeError, ValueError)
