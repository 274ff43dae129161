"""Progress of a batch of prompts on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress


class ProgressBar:
    """Counts prompts on standard error; shows nothing where that is no terminal."""

    def __init__(self, total: int, *, is_enabled: bool) -> None:
        self._total = total
        self._progress: Progress | None = None
        if is_enabled and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._progress = Progress(console=Console(stderr=True), transient=True)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
            self._task = self._progress.add_task("prompts", total=self._total)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self) -> None:
        """One more prompt is complete."""
        if self._progress is not None:
            self._progress.advance(self._task)
