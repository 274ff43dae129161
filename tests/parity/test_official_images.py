"""Images against the official codec: token counts, sizes, the picture itself, refusals."""

from __future__ import annotations

import base64
import io
import random
from collections.abc import Iterator
from typing import Any

import pytest

import recipe_rs

official: Any = pytest.importorskip("deepseek_recipe", reason="the official codec (deepseek-recipe) is not installed")
Image: Any = pytest.importorskip("PIL.Image", reason="pillow is not installed")
ImageChops: Any = pytest.importorskip("PIL.ImageChops", reason="pillow is not installed")
ImageStat: Any = pytest.importorskip("PIL.ImageStat", reason="pillow is not installed")

pytestmark = pytest.mark.parity
CODECS = (recipe_rs, official)


def encoded(image: Any, kind: str = "PNG", **options: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


def preprocessed(codec: Any, data: bytes, detail: str = "high") -> Any:
    return codec.OpenCvImagePreprocessor().preprocess(data, codec.PreprocessOptions(detail, 8192, 512))


def picture(info: Any) -> Any:
    return Image.open(io.BytesIO(info.data)).convert("RGB")


def adjustment(codec: Any, sizes: list[tuple[int, int]]) -> int:
    return codec.MultiModalData([codec.ImageInfo(b"", *size) for size in sizes]).image_token_adjustment()


def random_sizes(count: int, seed: int) -> Iterator[tuple[int, int]]:
    """Sizes of all magnitudes and shapes, and the extreme ones."""
    generator = random.Random(seed)
    yield from [(0, 0), (0, 5), (5, 0), (1, 1), (2**32 - 1, 1), (1, 2**32 - 1), (2**32 - 1, 2**32 - 1), (161, 1)]
    for _ in range(count):
        limit = generator.choice([64, 600, 1100, 4000, 8192, 100_000])
        size = generator.randint(1, limit), generator.randint(1, generator.choice([3, 60, limit]))
        yield size if generator.random() < 0.5 else size[::-1]


def assert_equal_token_counts(count: int, seed: int) -> None:
    for size in random_sizes(count, seed):
        assert adjustment(recipe_rs, [size]) == adjustment(official, [size]), size


def test_token_counts() -> None:
    assert_equal_token_counts(2_000, seed=1)
    sizes = list(random_sizes(100, seed=2))
    assert adjustment(recipe_rs, sizes) == adjustment(official, sizes)


@pytest.mark.slow
def test_token_counts_of_many_sizes() -> None:
    assert_equal_token_counts(100_000, seed=3)


def assert_equal_sizes(count: int, seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(count):
        limit = generator.choice([40, 600, 1500])
        size = generator.randint(1, limit), generator.randint(1, generator.choice([3, limit]))
        detail = generator.choice(["low", "high", "original", "auto"])
        data = encoded(Image.new("L", size, 255))
        ours, theirs = (preprocessed(codec, data, detail) for codec in CODECS)
        assert (ours.width, ours.height) == (theirs.width, theirs.height), (size, detail)


def test_sizes() -> None:
    assert_equal_sizes(20, seed=4)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sizes_of_many_images() -> None:
    assert_equal_sizes(400, seed=5)


@pytest.mark.parametrize("size", [(8192, 1), (1, 8192), (3, 5000), (5000, 3), (400, 1)])
def test_strips_too_long_for_the_file_format(size: tuple[int, int]) -> None:
    ours, theirs = (preprocessed(codec, encoded(Image.new("L", size))) for codec in CODECS)
    assert (ours.width, ours.height) == (theirs.width, theirs.height)


def chart(width: int, height: int) -> Any:
    """A picture of gradients and stripes whose resampling shows the kernel and the phase."""
    horizontal, vertical = (
        Image.linear_gradient("L").rotate(90).resize((width, height)),
        Image.linear_gradient("L").resize((width, height)),
    )
    stripes = Image.new("L", (width, height))
    stripes.putdata([255 * ((x // 5 + y // 7) % 2) for y in range(height) for x in range(width)])
    return Image.merge("RGB", (horizontal, vertical, stripes))


def mean_difference(one: Any, other: Any) -> float:
    """Mean absolute difference of two pictures, in levels of 255."""
    assert one.size == other.size
    return sum(ImageStat.Stat(ImageChops.difference(one, other)).mean) / 3


@pytest.mark.parametrize(
    ("size", "detail"),
    [
        ((100, 60), "high"),
        ((546, 546), "high"),
        ((1500, 900), "high"),
        ((700, 900), "low"),
        ((161, 4), "high"),
        ((1601, 1200), "low"),
    ],
)
def test_pictures_agree_up_to_the_loss_of_the_official_file(size: tuple[int, int], detail: str) -> None:
    """The official file is lossy with quality 90; another kernel, phase, or margin differs by more."""
    data = encoded(chart(*size))
    ours, theirs = (picture(preprocessed(codec, data, detail)) for codec in CODECS)
    lossy = Image.open(io.BytesIO(encoded(ours, "WEBP", quality=90))).convert("RGB")
    assert mean_difference(ours, theirs) <= 1.1 * mean_difference(ours, lossy) + 0.3
    assert mean_difference(ours, theirs) < mean_difference(ours.transform(ours.size, 0, (1, 0, 1, 0, 1, 0)), theirs)


def with_orientation() -> bytes:
    """A file that asks to be shown turned; both codecs leave it as it is stored."""
    exif = Image.Exif()
    exif[0x112] = 6
    return encoded(chart(100, 60), "JPEG", exif=exif, quality=95)


def animation() -> bytes:
    first, second = (Image.new("RGB", (40, 30), colour) for colour in ("red", "lime"))
    return encoded(first, "GIF", save_all=True, append_images=[second])


FILES = {
    "grey": lambda: encoded(Image.new("L", (50, 40), 77)),
    "transparent": lambda: encoded(Image.new("RGBA", (50, 40), (200, 10, 30, 0))),
    "half transparent": lambda: encoded(Image.new("RGBA", (50, 40), (200, 10, 30, 128))),
    "grey with alpha": lambda: encoded(Image.new("LA", (50, 40), (77, 60))),
    "16 bit": lambda: encoded(Image.new("I;16", (50, 40), 0x12F4)),
    "palette": lambda: encoded(Image.new("RGB", (50, 40), (9, 80, 160)).quantize(4)),
    "one bit": lambda: encoded(Image.new("1", (50, 40), 1)),
    "cmyk jpeg": lambda: encoded(Image.new("CMYK", (50, 40), (10, 200, 30, 40)), "JPEG", quality=95),
    "turned jpeg": with_orientation,
    "gif": lambda: encoded(Image.new("RGB", (50, 40), (9, 80, 160)), "GIF"),
    "animated gif": animation,
    "webp": lambda: encoded(chart(50, 40), "WEBP", lossless=True),
    "webp with alpha": lambda: encoded(
        Image.new("RGBA", (50, 40), (200, 10, 30, 90)), "WEBP", lossless=True, exact=True
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_kinds_of_files(name: str) -> None:
    data = FILES[name]()
    ours, theirs = (picture(preprocessed(codec, data)) for codec in CODECS)
    assert mean_difference(ours, theirs) < 6


def outcome(codec: Any, source: tuple[str, Any]) -> tuple[Any, ...]:
    """Sizes and quota of one source, or kind of the refusal and whether it names the path."""
    kind, value = source
    quota = codec.ImageQuota()
    resolver = codec.ImageResolver(codec.ReqwestImageFetcher(), codec.OpenCvImagePreprocessor())
    try:
        images = resolver.resolve([getattr(codec, kind)(value, path="messages.0")], quota).images
    except codec.ImageError as error:
        return error.kind, error.is_retryable, "messages.0" in str(error), quota.image_count(), quota.byte_size()
    return [(image.width, image.height) for image in images], quota.image_count(), quota.byte_size()


PNG = encoded(Image.new("RGB", (100, 60), (200, 10, 30)))
BASE64 = base64.b64encode(PNG).decode()
SOURCES = [
    *(
        ("DataUrlImageSource", head + BASE64)
        for head in (
            "data:image/png;base64,", "data:image/jpeg;base64,", "data:image/jpg;base64,", "DATA:IMAGE/PNG;BASE64,",
            "data:image/png;charset=utf-8;base64,", "data:image/png;base64, ", "data: image/png ;base64,",
            "data:;base64,", "data:text/plain;base64,", "data:image/bmp;base64,", "data:image/x-png;base64,",
            "data:image/png,", "image/png;base64,", "data:image/png;base64", "data:image/png;base64,*",
        )
    ),
    ("DataUrlImageSource", "data:image/png," + "".join(f"%{byte:02x}" for byte in PNG)),
    ("DataUrlImageSource", f"data:image/png;base64,{BASE64.rstrip('=')}#part"),
    ("DataUrlImageSource", f"data:image/png;base64,{BASE64[:40]}\n {BASE64[40:]}"),
    ("DataUrlImageSource", "data:image/png;base64,"),
    ("BytesImageSource", PNG),
    ("BytesImageSource", b""),
    ("BytesImageSource", b"junk"),
    ("BytesImageSource", encoded(Image.new("L", (9, 9)), "BMP")),
    ("BytesImageSource", encoded(Image.new("L", (8193, 1)))),
    ("BytesImageSource", encoded(Image.new("L", (8192, 1)))),
    ("BytesImageSource", bytes(32 * 2**20 + 1)),
    ("BytesImageSource", bytes(32 * 2**20)),
    ("UrlImageSource", "ftp://x"),
    ("UrlImageSource", "http://127.0.0.1:1/" + "x" * 8174),
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES, ids=range(len(SOURCES)))
def test_sources(source: tuple[str, Any]) -> None:
    assert outcome(recipe_rs, source) == outcome(official, source)
