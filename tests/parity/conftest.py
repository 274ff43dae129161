"""Shows what the comparisons reached, at the end of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

_TABLES = pytest.StashKey[list[tuple[str, Mapping[str, int]]]]()


@pytest.fixture
def coverage_table(request: pytest.FixtureRequest) -> Callable[[str, Mapping[str, int]], None]:
    """Takes a title and how often each thing was reached; printed when all tests are done."""
    tables = request.config.stash.setdefault(_TABLES, [])
    return lambda title, counts: tables.append((title, dict(counts)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for title, counts in config.stash.get(_TABLES, []):
        terminalreporter.section(f"reached: {title}")
        rows = [f"{name}: {count}" for name, count in counts.items()]
        width = 2 + max(map(len, rows), default=0)
        per_line = max(1, 120 // width)
        for start in range(0, len(rows), per_line):
            terminalreporter.write_line("".join(row.ljust(width) for row in rows[start : start + per_line]).rstrip())
