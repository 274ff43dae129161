"""Writes `unicode_classes.bin`: the character classes that the pre-tokenizers of `src/tokenizer/scan` distinguish.

The classes are read out of the reference (PyPI `tokenizers`) by running its own regex engine over every Unicode
scalar value, so the table has the reference's Unicode version by construction. Run it with the pinned version:

    python recipe-rs/data/make_unicode_classes.py [--check]

Layout: 4352 bytes, block number of each run of 256 code points; then 256 class bytes a block. Class numbers are those
of `CharClass` in `src/tokenizer/unicode.rs`.
"""

import sys
from pathlib import Path

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

OTHER, LETTER, MARK, NUMBER, PUNCT, SPACE, CJK_LETTER, CJK_MARK, CJK_PUNCT, CJK_OTHER = range(10)
CJK_RANGES = ((0x3040, 0x30FF), (0x4E00, 0x9FA5))
TARGET = Path(__file__).with_name("unicode_classes.bin")


def members(pattern: str) -> list[int]:
    """Returns the code points of the scalar values that the reference's `pattern` matches."""
    scalars = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF)
    pieces = Split(Regex(pattern), "removed", invert=True).pre_tokenize_str(scalars)
    return [ord(char) for piece, _ in pieces for char in piece]


def class_table() -> bytearray:
    """Returns one class byte for each code point, surrogates included (they count as `OTHER`)."""
    table = bytearray(0x110000)
    for pattern, value in (
        (r"\p{L}", LETTER),
        (r"\p{M}", MARK),
        (r"\p{N}", NUMBER),
        (r"[\p{P}\p{S}]", PUNCT),
        (r"\s", SPACE),
    ):
        for code_point in members(pattern):
            if table[code_point] != OTHER:
                raise SystemExit(f"U+{code_point:04X} is in two classes")
            table[code_point] = value
    in_cjk = {LETTER: CJK_LETTER, MARK: CJK_MARK, PUNCT: CJK_PUNCT, OTHER: CJK_OTHER}
    for first, last in CJK_RANGES:
        for code_point in range(first, last + 1):
            table[code_point] = in_cjk[table[code_point]]
    return table


def two_level(table: bytearray) -> bytes:
    """Returns the block numbers followed by the distinct blocks of 256."""
    blocks: dict[bytes, int] = {}
    index = bytearray()
    for start in range(0, len(table), 256):
        block = bytes(table[start : start + 256])
        index.append(blocks.setdefault(block, len(blocks)))
    return bytes(index) + b"".join(blocks)


def main() -> None:
    """Writes the file, or with `--check` compares it."""
    data = two_level(class_table())
    if "--check" in sys.argv[1:]:
        if TARGET.read_bytes() != data:
            raise SystemExit(f"{TARGET.name} differs from the reference's classes; run this script without --check")
        return
    TARGET.write_bytes(data)


if __name__ == "__main__":
    main()
