"""The console script `deepinfer`: from a command line to an exit code. Imports nothing before it can handle Ctrl-C."""

from __future__ import annotations

import sys
from typing import Final

from deepinfer.errors import EngineError

EXIT_BAD_INPUT: Final = 2
EXIT_INTERRUPTED: Final = 130


def main(arguments: list[str] | None = None) -> None:
    """Run a command line; every expected failure is one sentence and exit code 2, never a traceback."""
    try:
        from deepinfer.cli.commands import app

        app(args=arguments)
    except EngineError as error:
        _fail(str(error))
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except ImportError as error:
        _fail(f"the package {error.name} is missing; install it with: pip install 'open-deepinfer[serve]'")


def _fail(message: str) -> None:
    sys.stderr.write(f"error: {message}\n")
    sys.exit(EXIT_BAD_INPUT)
