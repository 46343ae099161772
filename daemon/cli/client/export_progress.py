"""Progress of an export that can be continued, in two files beside its output.

`.NAME.part` has the rows that arrived, as JSON lines. `.NAME.part.json` says how many of its bytes
count, and where the next page begins. Both are written after each page and deleted at the end.
Invariant: after an interruption at any point, every row is in the export once.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..api_client import NoResponse
from .printed import json_line


class ExportProgress(msgspec.Struct):
    """`asked` are the options that began the export. `place` is the current monitor."""

    asked: list[str]
    from_: str
    to: str
    # (id, slug)
    monitors: list[tuple[str, str]]
    place: int = 0
    cursor: str = ""
    size: int = 0
    rows: int = 0


class ResumableRows:
    """The rows that arrived, and the progress."""

    def __init__(self, output: Path, asked: list[str]) -> None:
        self._rows = output.with_name(f".{output.name}.part")
        self._state = output.with_name(f".{output.name}.part.json")
        self._asked = asked
        self._file: BinaryIO | None = None

    def read(self) -> ExportProgress | None:
        """Returns the progress of an interrupted export, None without one.

        Raises NoResponse if that export had other options.
        """
        try:
            found = msgspec.json.decode(self._state.read_bytes(), type=ExportProgress)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise NoResponse(f"{self._state} is damaged: {error}") from None
        if found.asked != self._asked:
            raise NoResponse(
                f"{self._rows} is of an export with other options: delete it, or give"
                f" them again: {' '.join(found.asked)}"
            )
        return found

    def open(self, progress: ExportProgress) -> None:
        self._file = self._rows.open("r+b" if progress.size else "wb")
        self._file.truncate(progress.size)
        self._file.seek(progress.size)

    def keep(self, rows: Sequence[dict[str, Any]], progress: ExportProgress) -> None:
        """Stores the rows of a page, and then the progress after it."""
        assert self._file is not None
        for row in rows:
            self._file.write(json_line(row) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        progress.size = self._file.tell()
        progress.rows += len(rows)
        made = self._state.with_name(f"{self._state.name}.new")
        made.write_bytes(msgspec.json.encode(progress))
        made.replace(self._state)

    def stored(self) -> Iterator[dict[str, Any]]:
        """Yields the rows of all pages."""
        with self._rows.open("rb") as file:
            for line in file:
                yield msgspec.json.decode(line)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def forget(self) -> None:
        """Deletes both files: the output is complete."""
        for path in (self._state, self._rows):
            with suppress(FileNotFoundError):
                path.unlink()
