"""Human sizes."""

import pytest

from deepinfer.cli.sizes import format_size, parse_size
from deepinfer.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("1", 1),
        ("512", 512),
        ("1k", 1024),
        ("2GiB", 2 << 30),
        ("1.5G", 3 << 29),
        ("512MB", 512 << 20),
        (" 1 tib ", 1 << 40),
    ],
)
def test_sizes(text, num_bytes):
    assert parse_size(text, "--x") == num_bytes


@pytest.mark.parametrize("text", ["", "GiB", "-1", "0", "0.1", "1 apple", "1e9", "1..5G", "½G", "inf"])
def test_what_is_no_size_is_refused_with_the_option(text):
    with pytest.raises(ConfigError, match="--kv-cache-memory must be a size"):
        parse_size(text, "--kv-cache-memory")


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (3 << 29, "1.5 GiB"),
        (500 << 30, "500 GiB"),
        (1 << 50, "1024.0 TiB"),
    ],
)
def test_formatting(num_bytes, text):
    assert format_size(num_bytes) == text
