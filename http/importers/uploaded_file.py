"""Conversion of an uploaded file. Afterwards no copy of it is on the disk."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from . import CannotImport, ImportResult, read_of

R = TypeVar("R")

BYTES_MOST: Final = 8 << 20
MODULES_BYTES_MOST: Final = 1 << 20


def read_upload(kind: str, file: bytes, modules: bytes = b"") -> ImportResult:
    """Converts a file. `modules` is the configuration of the blackbox exporter, if it is given.

    Raises:
        CannotImport.
    """
    return with_files(file, modules, lambda path, beside: read_of(kind, path, beside))


def with_files(file: bytes, modules: bytes, read: Callable[[Path, Path | None], R]) -> R:
    """Returns the result of `read` on the paths of the files.

    SQLite reads only files, so both are in a temporary folder until the end.

    Raises:
        CannotImport.
    """
    for data, most, what in (
        (file, BYTES_MOST, ""),
        (modules, MODULES_BYTES_MOST, "its modules: "),
    ):
        if len(data) > most:
            rule = f"larger than {most >> 20} MiB: use leadline bundle import on the host"
            raise CannotImport(f"{what}is {rule}")
    with TemporaryDirectory(prefix="leadline-import-") as folder:
        path = Path(folder, "file")
        path.write_bytes(file)
        beside = Path(folder, "modules")
        if modules:
            beside.write_bytes(modules)
        return read(path, beside if modules else None)
