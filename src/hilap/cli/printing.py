"""How commands print: tables for people, plain JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def console(*, error: bool = False) -> Any:
    """A rich console on standard output, or on standard error for what is not the result."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, soft_wrap=True)


def print_rows(title: str, rows: Iterable[tuple[str, Any]]) -> None:
    """A table of two columns: what, and how much."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="left", overflow="fold")
    for what, value in rows:
        table.add_row(what, shown(value))
    console().print(table)


def shown(value: Any) -> str:
    """A figure as people read it."""
    from rich.markup import escape

    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(item) for item in value)
    return escape(str(value))
