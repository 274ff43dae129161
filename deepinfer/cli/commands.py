"""The commands of the console script `deepinfer`: one file each, importing what is heavy only when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from deepinfer import __version__
from deepinfer.cli.bench import bench
from deepinfer.cli.chat import chat
from deepinfer.cli.doctor import doctor
from deepinfer.cli.generate import generate
from deepinfer.cli.serve import serve

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
