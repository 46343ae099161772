"""Reports how much of a run's time was waiting; LEADLINE_KIND_TIMES=1 adds the kinds.

Where the system lets a process make control groups, it also adds CPU seconds, with those of the
servers and daemons that the tests started. Other load on the machine changes them little.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.run.cpu import CpuGroup, enter
from tests.support.run.kinds import TESTS, kind_of

_STARTED: Final = time.monotonic()
_HAS_KINDS: Final = os.environ.get("LEADLINE_KIND_TIMES") == "1"
_SLOWEST: Final = 40


def _cpu_ticks() -> tuple[int, int]:
    """Returns (idle, total) of all cores since the machine started; zeros without /proc/stat."""
    try:
        with open("/proc/stat") as stat:
            numbers = [int(word) for word in stat.readline().split()[1:9]]
    except OSError:
        return 0, 0
    return numbers[3] + numbers[4], sum(numbers)


class Timing:
    """Collects the CPU and wall seconds of the processes of tests, and prints the shares."""

    def __init__(self, group: CpuGroup | None) -> None:
        self._group = group
        self._cpu_of_tests: dict[str, float] = {}
        self._cpu_seconds = 0.0
        self._wall_seconds = 0.0
        self._idle, self._total = _cpu_ticks()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self._group is None:
            return (yield)
        began = self._group.seconds()
        try:
            return (yield)
        finally:
            self._cpu_of_tests[item.nodeid] = self._group.seconds() - began

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["seconds"] = (time.process_time(), time.monotonic() - _STARTED)
            output["cpu_of_tests"] = self._cpu_of_tests
        if self._group is not None:
            self._group.leave()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        cpu, wall = getattr(node, "workeroutput", {}).get("seconds", (0.0, 0.0))
        self._cpu_seconds += cpu
        self._wall_seconds += wall
        self._cpu_of_tests.update(getattr(node, "workeroutput", {}).get("cpu_of_tests", {}))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        cpu, wall = self._cpu_seconds, self._wall_seconds
        if not wall:
            cpu, wall = time.process_time(), time.monotonic() - _STARTED
        line = f"test processes waited {max(0.0, 1 - cpu / wall):.0%} of their time"
        idle, total = _cpu_ticks()
        if total > self._total:
            share = (idle - self._idle) / (total - self._total)
            line += f"; the cores were idle {share:.0%} of the run"
        terminalreporter.write_line(line)
        if _HAS_KINDS:
            _print_kinds(terminalreporter, self._cpu_of_tests)


def pytest_configure(config: pytest.Config) -> None:
    runs_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    config.pluginmanager.register(Timing(enter() if _HAS_KINDS and runs_tests else None))


def _print_kinds(terminalreporter: Any, cpu_of_tests: dict[str, float]) -> None:
    """Prints seconds and CPU seconds of each kind, of the slowest files, and of the tests that use
    most CPU.
    """
    seconds: dict[str, float] = defaultdict(float)
    cpu: dict[str, float] = defaultdict(float)
    items: dict[str, set[str]] = defaultdict(set)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                for place in _places(report.nodeid):
                    seconds[place] += report.duration
                    items[place].add(report.nodeid)
    for test, used in cpu_of_tests.items():
        for place in _places(test):
            cpu[place] += used
    slowest = sorted(seconds, key=seconds.__getitem__, reverse=True)
    kinds = sorted(place for place in seconds if not place.endswith(".py"))
    files = [place for place in slowest if place.endswith(".py")][:_SLOWEST]
    for place in (*kinds, *files):
        terminalreporter.write_line(
            f"{seconds[place]:8.1f} s {cpu[place]:8.1f} s CPU {len(items[place]):5} items  {place}"
        )
    for test in sorted(cpu_of_tests, key=cpu_of_tests.__getitem__, reverse=True)[:_SLOWEST]:
        terminalreporter.write_line(f"{cpu_of_tests[test]:8.1f} s CPU  {test}")


def _places(test: str) -> tuple[str, str]:
    """Returns the kind and the file of a test."""
    file = test.partition("::")[0]
    return kind_of(TESTS.parent / file), file
