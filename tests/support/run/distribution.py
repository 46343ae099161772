"""Selects the tier of a run and spreads its tests over the processes, the longest first."""

from collections.abc import Iterable
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Final

import pytest

from tests.support.run.effort import IS_SOAK
from tests.support.run.kinds import is_walk, kind_of

# Seconds of the longest test of a file, or of the whole file if it runs as one group.
# A run would end later if one of them began late. Measured on two cores, to about a fifth.
_SECONDS: Final[dict[str, float]] = {
    "server/test_console_quality_screen.py": 80,
    "journeys/test_release_gate.py": 50,
    "server/test_console_walk_screen.py": 45,
    "journeys/test_configuration_as_code.py": 35,
    "agents/test_beside_server_process.py": 28,
    "journeys/test_local_failures.py": 28,
    "journeys/test_first_hour.py": 27,
    "journeys/test_on_call_commands.py": 30,
    "journeys/test_fuzzed.py": 27,
    "journeys/test_incidents.py": 24,
    "status_pages/test_status_pages_composer_screen.py": 15,
    "status_pages/test_status_pages_preview_screen.py": 12,
    "monitors/test_pickers_walk_screen.py": 15,
    "journeys/test_separate_roles.py": 20,
    "journeys/test_operations.py": 20,
    "journeys/test_pipelines.py": 20,
    "notifications/test_deliveries_in_chaos_loop.py": 15,
    "probes/kinds/test_rabbitmq.py": 19,
    "journeys/test_health_of_roles.py": 18,
    "journeys/test_canary_values.py": 15,
    "journeys/test_alertmanager.py": 15,
    "services/test_service_figures_storage.py": 6,
    "figures/test_composite_figures_storage.py": 8,
    "services/test_services_walk_screen.py": 12,
    "incidents/test_incidents_screen.py": 12,
    "journeys/test_generated_client.py": 12,
    "journeys/test_single_sign_on.py": 8,
    "journeys/test_status_page_readers.py": 8,
}
# Seconds of a test of another file, on average.
_OTHER_SECONDS: Final = 0.25
# Tests that wait for much of their time. If they followed each other, all processes would wait at
# the same time, and the cores would be idle.
_WAITING_KINDS: Final = {"process", "journeys", "probes"}
_WAITING_FILES: Final = {
    "engine/test_embedded_storage.py",
    "notifications/test_deliveries_in_chaos_loop.py",
}
# The parts of the run in which the long and the short ones of them begin.
_LONG_PART: Final = 0.8
_SHORT_PART: Final = 0.95
_GOLDEN_RATIO: Final = 0.618_034


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skips the other files for `-m rule`: to import them takes longer than the tests."""
    only_rules = config.option.markexpr.strip() == "rule"
    is_other = collection_path.match("test_*.py") and kind_of(collection_path) != "rule"
    return True if only_rules and is_other else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the tests of this tier, and groups and orders them.

    Without LEADLINE_SOAK=1 the tests that are marked `soak` are left out. The tests of a file that
    share a server stay in one process; all others are free.
    """
    if not IS_SOAK:
        left_out = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
    for item in items:
        if _shares_a_server(item):
            group = "walks" if is_walk(item.path) else _file(item)
            item.add_marker(pytest.mark.xdist_group(group))
    items[:] = _ordered(items)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fails the run if the scheduler will not see a group.

    Each process would then start the servers of each file. The run would only take longer."""
    if session.config.getoption("loadgroup", default=False):
        for item in session.items:
            group = item.get_closest_marker("xdist_group")
            if group is not None and not item.nodeid.endswith(f"@{group.args[0]}"):
                raise pytest.UsageError(f"pytest-xdist did not add its group to {item.nodeid}")


def _shares_a_server(item: pytest.Item) -> bool:
    """Returns whether the test uses a fixture that pytest makes once for its file."""
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.values() if info is not None else ()
    return any(chain[-1].scope in {"module", "class"} for chain in definitions)


def _ordered(items: list[pytest.Item]) -> list[pytest.Item]:
    """Orders the tests so that the longest begin first and those that wait are spread out."""
    # Stable: tests of equal length keep the order of the files.
    units = sorted(_units(items), key=lambda unit: -_seconds(unit))
    busy = [unit for unit in units if not _waits(unit)]
    waiting = [unit for unit in units if _waits(unit)]
    long = [unit for unit in waiting if _file(unit[0]) in _SECONDS]
    short = [unit for unit in waiting if _file(unit[0]) not in _SECONDS]
    places = _by_length(busy, 1.0) + _by_length(long, _LONG_PART)
    # Neighbours in a file often wait equally long: they get places that are far apart.
    places += [
        (number * _GOLDEN_RATIO % 1.0 * _SHORT_PART, unit) for number, unit in enumerate(short)
    ]
    return [item for _, unit in sorted(places, key=itemgetter(0)) for item in unit]


def _waits(unit: list[pytest.Item]) -> bool:
    kind = kind_of(unit[0].path)
    return kind in _WAITING_KINDS or _file(unit[0]) in _WAITING_FILES


def _units(items: list[pytest.Item]) -> Iterable[list[pytest.Item]]:
    """Returns the groups; a test without a group is a unit of its own."""
    units: dict[str, list[pytest.Item]] = {}
    for item in items:
        group = item.get_closest_marker("xdist_group")
        units.setdefault(group.args[0] if group else item.nodeid, []).append(item)
    return units.values()


def _by_length(
    units: list[list[pytest.Item]], part: float
) -> list[tuple[float, list[pytest.Item]]]:
    """Places each unit at the part of the run by which those before it have ended."""
    begins = list(accumulate(map(_seconds, units), initial=0.0))
    return [(part * at / begins[-1], unit) for at, unit in zip(begins, units, strict=False)]


def _seconds(unit: list[pytest.Item]) -> float:
    known = sum(_SECONDS.get(file, 0) for file in set(map(_file, unit)))
    return known or _OTHER_SECONDS * len(unit)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0].removeprefix("tests/")
