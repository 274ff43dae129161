"""The console script `deepinfer`: one file per command, each importing what is heavy only when it runs."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from deepinfer import __version__
from deepinfer.cli.bench import bench
from deepinfer.cli.chat import chat
from deepinfer.cli.doctor import doctor
from deepinfer.cli.generate import generate
from deepinfer.cli.serve import serve
from deepinfer.errors import EngineError

EXIT_BAD_INPUT: Final = 2
EXIT_INTERRUPTED: Final = 130

app = typer.Typer(
    name="deepinfer",
    help="Run open models: an OpenAI-compatible server, a chat in the terminal, and the tools around them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    del version


for _command in (serve, chat, generate, bench, doctor):
    app.command()(_command)


def main(arguments: list[str] | None = None) -> None:
    """Run a command line; every expected failure is one sentence and exit code 2, never a traceback."""
    try:
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
