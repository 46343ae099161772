"""Import of the monitors of other tools as a bundle, with a report of the losses."""

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
    """Returns the import of a file. Raises: CannotImport, OSError."""
    try:
        return read_blackbox(path, modules) if kind == "blackbox" else _READERS[kind](path)
    except CannotImport:
        raise
    # A file whose parts have other types than those of the tool.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CannotImport("has a structure that the importer does not know") from error
    except RecursionError:
        raise CannotImport("is nested too deeply") from None
