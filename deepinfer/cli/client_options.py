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
Temperature = Annotated[
    float | None,
    typer.Option(help="0 is greedy. Default: the model's.", min=0.0, max=2.0, rich_help_panel=SAMPLING_PANEL),
]
TopP = Annotated[float | None, typer.Option(help="Nucleus sampling.", min=0.0, max=1.0, rich_help_panel=SAMPLING_PANEL)]
Seed = Annotated[int | None, typer.Option(help="Makes an answer repeatable.", min=0, rich_help_panel=SAMPLING_PANEL)]
