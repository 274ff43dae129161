"""`deepinfer doctor`: what this machine and installation have, what will be used, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def doctor(
    model: Annotated[
        str | None,
        typer.Argument(metavar="[PATH]", help="Say what would run this model. Default: the default model."),
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show device, torch, triton, codec, CPU operators, threads and memory, and what will be used.

    Exit code 1 when something that is needed is missing.
    """
    import json

    from deepinfer.cli.findings import examine

    findings = examine(None if model is None else Path(model))
    if json_output:
        sys.stdout.write(json.dumps([finding.to_json() for finding in findings]) + "\n")
    else:
        from rich.console import Console
        from rich.table import Table

        marks = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "missing": "[red]missing[/]"}
        table = Table(box=None, pad_edge=False)
        for heading in ("", "what", "found", "means"):
            table.add_column(heading, overflow="fold")
        for finding in findings:
            table.add_row(marks[finding.status], finding.subject, finding.found, finding.consequence)
        Console(highlight=False).print(table)
    if any(finding.status == "missing" for finding in findings):
        raise typer.Exit(1)
