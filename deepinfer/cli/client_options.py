"""Options of the commands that talk to a server."""

from __future__ import annotations

from typing import Annotated, Final

import typer

TARGET_PANEL: Final = "Server to talk to"
SAMPLING_PANEL: Final = "Sampling"

Url = Annotated[
    str | None,
    typer.Option(help="A running server, like http://127.0.0.1:8000.", rich_help_panel=TARGET_PANEL),
]
ApiKey = Annotated[
    str | None,
    typer.Option(help="Key for it.", envvar="DEEPINFER_API_KEY", rich_help_panel=TARGET_PANEL),
]
ModelName = Annotated[
    str | None,
    typer.Option("--model", help="Model of that server. Default: its first.", rich_help_panel=TARGET_PANEL),
]
System = Annotated[str | None, typer.Option(help="System message.", rich_help_panel=SAMPLING_PANEL)]
MaxTokens = Annotated[int | None, typer.Option(help="Longest answer in tokens.", min=1, rich_help_panel=SAMPLING_PANEL)]

# An interactive user judges a model by its first answers, and small models ramble at temperature 1.
DEFAULT_TEMPERATURE = 0.7
DEFAULT_TOP_P = 0.95
Temperature = Annotated[
    float,
    typer.Option(help="0 is greedy.", min=0.0, max=2.0, rich_help_panel=SAMPLING_PANEL),
]
TopP = Annotated[float, typer.Option(help="Nucleus sampling.", min=0.0, max=1.0, rich_help_panel=SAMPLING_PANEL)]
Seed = Annotated[int | None, typer.Option(help="Makes an answer repeatable.", min=0, rich_help_panel=SAMPLING_PANEL)]
