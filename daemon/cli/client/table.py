"""Tables for people: aligned columns that fit the terminal.

`lines` is pure. The output of a command that is not on a terminal has no colour, and no cell is
cut, so that no pipe loses data.
"""

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import click
from rich.cells import cell_len, chop_cells

from ..safe_text import shown

GAP: Final = 2
# A column is not made narrower than this, unless the terminal has no room for all columns.
NARROWEST: Final = 8
CELL_LONGEST: Final = 300
_COLOURS: Final = {
    "up": "green",
    "down": "red",
    "pending": "yellow",
    "paused": "bright_black",
    "investigating": "red",
    "identified": "yellow",
    "monitoring": "yellow",
    "resolved": "green",
    "critical": "red",
    "major": "red",
    "healthy": "green",
    "degraded": "yellow",
    "unknown": "yellow",
    "failed": "red",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column. A `right` one is for numbers. Only a `cut` one loses text on a narrow terminal."""

    title: str
    right: bool = False
    cut: bool = False


def terminal_width() -> int | None:
    """Returns the cells of a line of the terminal; None if the output is not on a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[Any]], nothing: str) -> None:
    """Prints a table, or a sentence if it has no rows."""
    if not rows:
        click.echo(nothing)
        return
    for line in lines(columns, rows, terminal_width()):
        click.echo(line)


def print_fields(fields: Sequence[tuple[str, Any]]) -> None:
    """Prints a name and a value in each line. A value can have several lines of the terminal."""
    width = max(cell_len(name) for name, _ in fields)
    for name, value in fields:
        text = shown("" if value is None else str(value), 2_000)
        click.echo(f"{name.ljust(width)}  {_painted(text, text)}".rstrip())


def lines(columns: Sequence[Column], rows: Sequence[Sequence[Any]], width: int | None) -> list[str]:
    """Returns the lines of a table that are at most `width` cells long, without limit for None."""
    texts = [
        [shown("" if cell is None else str(cell), CELL_LONGEST) for cell in row] for row in rows
    ]
    widths = [
        max(cell_len(column.title), *(cell_len(row[at]) for row in texts))
        for at, column in enumerate(columns)
    ]
    if width is not None:
        widths = _fitted(columns, widths, width - GAP * (len(columns) - 1))
    heads = [column.title for column in columns]
    head = _line(columns, heads, widths, styled=False)
    return [head, *(_line(columns, row, widths, styled=True) for row in texts)]


def _fitted(columns: Sequence[Column], wanted: Sequence[int], room: int) -> list[int]:
    """Returns widths with at most `room` cells: first the widest column that may be cut shrinks,
    then the widest of all."""
    widths = list(wanted)
    cut = [at for at, column in enumerate(columns) if column.cut]
    for places, least in ((cut, NARROWEST), (range(len(widths)), 1)):
        while sum(widths) > room:
            widest = max(places, key=lambda at: widths[at], default=None)
            if widest is None or widths[widest] <= least:
                break
            widths[widest] -= 1
    return widths


def _line(
    columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int], *, styled: bool
) -> str:
    parts = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        text = fitted_cell(cell, width)
        space = " " * (width - cell_len(text))
        painted = _painted(text, cell) if styled else text
        parts.append(space + painted if column.right else painted + space)
    return (" " * GAP).join(parts).rstrip()


def fitted_cell(text: str, width: int) -> str:
    """Returns the text, cut with an ellipsis if it has more cells."""
    if cell_len(text) <= width:
        return text
    kept = chop_cells(text, width - 1)[0] if width > 1 else ""
    return f"{kept}…"


def _painted(text: str, word: str) -> str:
    colour = _COLOURS.get(word)
    return click.style(text, fg=colour) if colour else text
