"""The kind of a test: the last word of its file's name, or else the name of its folder."""

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[2]
# tests/README.md describes the kinds.
# Files of screens whose tests share one daemon and one browser; each file has its own project.
_WALKS: Final = {
    "test_contradiction_screen",
    "test_incident_templates_screen",
    "test_incidents_screen",
    "test_pickers_walk_screen",
    "test_services_walk_screen",
    "test_status_pages_composer_screen",
    "test_status_pages_preview_screen",
}
KINDS: Final = ("rule", "storage", "loop", "api", "screen", "public", "process", "command")


def kind_of(path: Path) -> str:
    """Returns `storage` for `tests/gate/test_gate_overrides_storage.py`, and `probes`, `journeys`,
    `house`, `daemon` or `bench` for a file of those folders whose name has no kind."""
    last = path.stem.rpartition("_")[2]
    return last if last in KINDS else path.relative_to(TESTS).parts[0]


def is_walk(path: Path) -> bool:
    """Returns whether the daemon of a file of screens is one that other files use too."""
    return path.stem in _WALKS
