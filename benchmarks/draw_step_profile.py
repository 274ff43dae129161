"""Draws where the time of a step goes: python benchmarks/draw_step_profile.py PROFILE.json PICTURE.svg

PROFILE.json comes from `scripts/bench cpu --profile`. Each bar is one step of one sequence at a context; its parts are
the kinds of phases, the caller's thread waiting for the others shown in grey. The mark says how long reading the bytes
of the step takes at the measured limit of the machine. Standard library only.
"""

import json
import sys
from html import escape
from pathlib import Path

COLOURS = {
    "embed": "#9aa5b1", "prepare": "#c9a227", "qkv": "#3b7dd8", "attention": "#d1495b", "output": "#66a182",
    "gate_up": "#2e4057", "down": "#8d6a9f", "head": "#e8871e", "sample": "#00798c",
}  # fmt: skip
LABELS = {
    "embed": "embeddings", "prepare": "norms", "qkv": "q, k, v projections", "attention": "attention",
    "output": "output projection", "gate_up": "gate and up projections", "down": "down projection",
    "head": "output head", "sample": "sampling",
}  # fmt: skip
WIDTH, LEFT, BAR, GAP, TOP = 860, 110, 46, 34, 76


def draw(profile: dict) -> str:
    """The picture as SVG."""
    steps, machine = profile["steps"], profile["machine"]
    longest = max(step["step_ms"] for step in steps)
    scale = (WIDTH - LEFT - 30) / longest
    parts = [_text(LEFT, 24, f"One step of one sequence, {machine['threads']} threads", 16)]
    parts.append(_text(LEFT, 46, f"{machine['processor']}; reads at most {machine['read_gb_s']} GB/s", 12))
    for index, step in enumerate(steps):
        y = TOP + index * (BAR + GAP)
        parts.append(_text(8, y + 20, f"context {step['context']}", 13))
        parts.append(_text(8, y + 38, f"{step['step_ms']:.2f} ms", 12))
        x = float(LEFT)
        wait = 0.0
        total = sum(phase["work_ms"] + phase["wait_ms"] for phase in step["phases"].values())
        factor = step["step_ms"] / total
        for name, phase in step["phases"].items():
            width = phase["work_ms"] * factor * scale
            wait += phase["wait_ms"] * factor * scale
            title = f"{LABELS[name]}: {phase['work_ms']:.3f} ms ({100 * phase['work_ms'] / total:.0f}%)"
            parts.append(_bar(x, y, width, COLOURS[name], title))
            if width > 34:
                parts.append(_text(x + 4, y + 27, f"{100 * phase['work_ms'] / total:.0f}%", 12, "#ffffff"))
            x += width
        parts.append(_bar(x, y, wait, "#d8dde3", f"waiting: {wait / scale:.3f} ms"))
        limit = LEFT + step["step_ms"] * step["share_of_read_limit"] * scale
        parts.append(f'<path d="M{limit:.1f} {y - 6}v{BAR + 12}" stroke="#000" stroke-dasharray="4 3"/>')
        share = f"read limit: {100 * step['share_of_read_limit']:.0f}% of the step"
        parts.append(_text(limit - 168, y + BAR + 16, share, 11))
    y = TOP + len(steps) * (BAR + GAP) + 12
    legend = [*((COLOURS[name], LABELS[name]) for name in steps[0]["phases"]), ("#d8dde3", "waiting")]
    for index, (colour, label) in enumerate(legend):
        column, row = index % 4, index // 4
        parts.append(_bar(LEFT + column * 180, y + row * 22, 12, colour, label, height=12))
        parts.append(_text(LEFT + column * 180 + 18, y + row * 22 + 11, label, 12))
    height = y + (len(legend) + 3) // 4 * 22 + 10
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif">'
    return "\n".join([head, f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>', *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, size: int, colour: str = "#1b1f24") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}">{escape(text)}</text>'


def _bar(x: float, y: float, width: float, colour: str, title: str, height: int = BAR) -> str:
    box = f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height}" fill="{colour}">'
    return f"{box}<title>{escape(title)}</title></rect>"


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    profile = json.loads(Path(sys.argv[1]).read_text())
    Path(sys.argv[2]).write_text(draw(profile))


if __name__ == "__main__":
    main()
