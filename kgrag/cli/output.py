"""What commands print: JSON for programs, tables for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    print(json.dumps(value, ensure_ascii=False, default=str), flush=True)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table as wide as the terminal; plain columns in a pipe."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if not console.is_terminal:
        console.width = 10_000
    console.print(table)


def shortened(text: str, characters: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 3].rstrip() + "..."
