"""Selects the tier of a run and spreads its tests over the processes, the longest first."""

from itertools import accumulate
from pathlib import Path
from typing import Final

import pytest

from tests.effort import IS_SOAK

# Seconds of the longest test of a file, or of the whole file if it runs as one group.
# A run would end later if one of them began late. Measured on two cores, to about a fifth.
_SECONDS: Final[dict[str, float]] = {
    "console/test_console_quality.py": 80,
    "journeys/test_release_gate.py": 50,
    "console/test_console_walk.py": 45,
    "journeys/test_canary.py": 45,
    "journeys/test_configuration_as_code.py": 35,
    "agent/test_beside_server.py": 28,
    "journeys/test_our_own_trouble.py": 28,
    "journeys/test_red_and_green.py": 27,
    "journeys/test_incidents.py": 24,
    "console/test_status_pages_composer.py": 23,
    "journeys/test_roles_apart.py": 20,
    "journeys/test_operations.py": 20,
    "journeys/test_pipelines.py": 20,
    "loops/test_deliveries_in_chaos.py": 20,
    "probes/test_rabbitmq_probe.py": 19,
    "journeys/test_health_of_roles.py": 18,
    "journeys/test_canary_values.py": 15,
    "journeys/test_alertmanager.py": 15,
    "transactions/test_service_figures.py": 15,
    "transactions/test_composite_figures.py": 15,
    "console/test_services_walk.py": 12,
    "console/test_incidents_page.py": 12,
    "journeys/test_generated_client.py": 12,
    "journeys/test_forgotten_password.py": 12,
    "journeys/test_signing_in_elsewhere.py": 8,
    "journeys/test_fuzzed.py": 10,
    "journeys/test_status_page_readers.py": 8,
}
# Seconds of a test of another file, on average.
_OTHER_SECONDS: Final = 0.25
# Tests that wait for most of their time. If they followed each other, all processes would wait at
# the same time, and the cores would be idle.
_WAITING: Final = (
    "agent/",
    "journeys/",
    "probes/test_every_kind_is_guarded.py",
    "probes/test_icmp_probe.py",
    "probes/test_real_starttls.py",
    "probes/test_run.py",
    "probes/test_ssh_probe.py",
    "probes/test_websocket_probe.py",
    "storage/test_embedded.py",
)
# The part of the run in which they begin. The last of them can be long.
_WAITING_PART: Final = 0.8
_GOLDEN_RATIO: Final = 0.618_034
_TESTS: Final = Path(__file__).parent
_FOLDERS_WITHOUT_RULES: Final = {path for path in _TESTS.iterdir() if path.name != "rules"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skips the other folders for `-m rule`: to import them takes longer than the tests."""
    only_rules = config.option.markexpr.strip() == "rule"
    return True if only_rules and collection_path in _FOLDERS_WITHOUT_RULES else None


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
            item.add_marker(pytest.mark.xdist_group(_file(item)))
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
    items = sorted(items, key=lambda item: -_seconds(item))
    waiting = [item for item in items if _file(item).startswith(_WAITING)]
    places = _by_cost([item for item in items if not _file(item).startswith(_WAITING)], 1.0)
    places += _by_cost([item for item in waiting if _file(item) in _SECONDS], _WAITING_PART)
    # Long tests often follow each other in a file: neighbours get places that are far apart.
    places += [
        (number * _GOLDEN_RATIO % 1.0 * _WAITING_PART, item)
        for number, item in enumerate(item for item in waiting if _file(item) not in _SECONDS)
    ]
    return [item for _, item in sorted(places, key=lambda place: place[0])]


def _by_cost(items: list[pytest.Item], part: float) -> list[tuple[float, pytest.Item]]:
    """Places each test at the part of the run by which those before it have ended."""
    costs = [_cost(item, before) for item, before in zip(items, [None, *items], strict=False)]
    whole = sum(costs) or 1.0
    begins = accumulate(costs, initial=0.0)
    return [(part * at / whole, item) for at, item in zip(begins, items, strict=False)]


def _cost(item: pytest.Item, before: pytest.Item | None) -> float:
    """Returns the seconds of a test; the first of a group has those of the group."""
    grouped = item.get_closest_marker("xdist_group") is not None
    if grouped and before is not None and _file(before) == _file(item):
        return 0.0
    return _seconds(item)


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0].removeprefix("tests/")


def _seconds(item: pytest.Item) -> float:
    return _SECONDS.get(_file(item), _OTHER_SECONDS)
