"""Refusal of a change whose project is locked by another change for longer than a request waits."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from ..core.refusal import Refused
from .pools import LockTimeout

LOCKED: Final = "project_locked"
_WHY: Final = "the project is locked by another change: try again later"


@contextmanager
def refused_when_locked() -> Iterator[None]:
    """Converts a lock timeout inside the block to a refusal.

    A deletion of the project or the application of a bundle can have its locks for longer.
    """
    try:
        yield
    except LockTimeout as error:
        raise Refused(LOCKED, "", _WHY) from error
