"""The kind of a test: the last word of its file's name, or else the name of its folder."""

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[2]
# tests/README.md describes the kinds.
KINDS: Final = ("rule", "storage", "loop", "api", "screen", "public", "process", "command")


def kind_of(path: Path) -> str:
    """Returns `storage` for `tests/gate/test_gate_overrides_storage.py`, and `probes`, `journeys`,
    `house`, `daemon` or `bench` for a file of those folders whose name has no kind."""
    last = path.stem.rpartition("_")[2]
    return last if last in KINDS else path.relative_to(TESTS).parts[0]
