"""The files of a folder of migrations, with their guards. `migrations/README.md` has the format."""

import hashlib
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

# A guard and its continuation lines. Any other comment that begins with the word is an error, since
# a guard that is misspelt would protect nothing.
_GUARD: Final = re.compile(r"-- guard ([a-z_][a-z0-9_]*) where (\S.*)")
_GUARD_WORD: Final = re.compile(r"--\s*guards?\b", re.IGNORECASE)
_CONTINUED: Final = re.compile(r"-- {3,}(\S.*)")


class CannotMigrate(Exception):
    """The database cannot be migrated. The message is the reason."""


class Guard(NamedTuple):
    """Rows of `table` that satisfy `condition` stop the upgrade."""

    table: str
    condition: str

    @property
    def query(self) -> bytes:
        return f"select count(*) from {self.table} where ({self.condition})".encode()


class Migration(NamedTuple):
    version: int
    name: str
    text: bytes
    guards: tuple[Guard, ...]

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text).hexdigest()


def read_folder(folder: Path) -> list[Migration]:
    """Returns the files of a folder in their order.

    Raises CannotMigrate if two files have one number, or a guard is malformed.
    """
    files = [_read(path) for path in sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))]
    for before, after in pairwise(files):
        if before.version == after.version:
            raise CannotMigrate(f"{before.name} and {after.name} have the same number")
    return files


def _read(path: Path) -> Migration:
    text = path.read_bytes()
    guards = tuple(_guards(path.stem, text.decode().splitlines()))
    return Migration(int(path.name[:4]), path.stem, text, guards)


def _guards(name: str, lines: list[str]) -> Iterator[Guard]:
    statements_began = False
    guard: Guard | None = None
    for line in lines:
        continued = _CONTINUED.fullmatch(line)
        if guard is not None and continued:
            guard = Guard(guard.table, f"{guard.condition} {continued[1]}")
            continue
        if guard is not None:
            yield guard
            guard = None
        if _GUARD_WORD.match(line.lstrip()):
            found = _GUARD.fullmatch(line)
            if found is None:
                raise CannotMigrate(f"{name}: not a guard: {line.strip()}")
            if statements_began:
                raise CannotMigrate(f"{name}: a guard follows a statement: {line}")
            guard = Guard(found[1], found[2])
        statements_began |= bool(line.strip()) and not line.lstrip().startswith("--")
    if guard is not None:
        yield guard
