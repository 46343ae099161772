"""What other tools know becomes a bundle, and a report of what could not be carried over."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from .blackbox import read_blackbox
from .gatus import read_gatus
from .healthchecks import read_healthchecks
from .import_result import CannotImport, ImportResult
from .kuma import read_kuma

__all__ = ["CannotImport", "ImportResult", "read_of"]

_READERS: Final[dict[str, Callable[[Path], ImportResult]]] = {
    "kuma": read_kuma,
    "gatus": read_gatus,
    "healthchecks": read_healthchecks,
}


def read_of(kind: str, path: Path, modules: Path | None = None) -> ImportResult:
    """Raises CannotImport, OSError."""
    return read_blackbox(path, modules) if kind == "blackbox" else _READERS[kind](path)
