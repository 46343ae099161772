"""Rows of an export as CSV (RFC 4180) or as JSON lines, in a file or on the standard output.

Invariants: a row is written when it has arrived, so that an export needs the memory of one page. A
file is complete or absent: the rows go to a temporary file, which replaces the named one at the
end. A text that a spreadsheet would run as a formula has an apostrophe before it in CSV.
"""

import csv
import io
import os
import secrets
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from ..api_client import NoResponse
from .parquet_rows import PARQUET, ParquetRows
from .printed import json_line

CSV: Final = "csv"
JSON_LINES: Final = "jsonl"
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class RowWriter:
    """Writes rows with the given fields. `count` is the number of written rows."""

    def __init__(self, out: BinaryIO, form: str, fields: Sequence[str]) -> None:
        self._out = out
        self._form = form
        self._fields = fields
        self._has_head = False
        self.count = 0

    def write(self, row: dict[str, Any]) -> None:
        self.begin()
        if self._form == CSV:
            self._line([_cell(row.get(field)) for field in self._fields])
        else:
            self._out.write(json_line(row) + b"\n")
        self.count += 1

    def begin(self) -> None:
        """Writes the header of CSV, once. An export that is refused has none."""
        if self._form == CSV and not self._has_head:
            self._line(self._fields)
        self._has_head = True

    def _line(self, cells: Sequence[str]) -> None:
        text = io.StringIO()
        csv.writer(text).writerow(cells)
        self._out.write(text.getvalue().encode())


Rows = RowWriter | ParquetRows


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        value = "; ".join(str(each) for each in value)
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return str(value)


@contextmanager
def opened_rows(path: Path | None, form: str, fields: Collection[str]) -> Iterator[Rows]:
    """Yields a writer to the file, or to the standard output. Raises NoResponse if it fails.

    `fields` has the types of the fields if Parquet can be written, see ParquetRows.
    """
    if path is None:
        out: BinaryIO = sys.stdout.buffer
        yield RowWriter(out, form, tuple(fields))
        out.flush()
        return
    made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with made.open("xb") as file:
            if form == PARQUET:
                assert isinstance(fields, Mapping), "Parquet has types"
                rows = ParquetRows(file, fields)
                try:
                    yield rows
                finally:
                    rows.close()
            else:
                yield RowWriter(file, form, tuple(fields))
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
    except OSError as error:
        raise NoResponse(f"{path} cannot be written: {error.strerror}") from error
    finally:
        made.unlink(missing_ok=True)
