"""Reports how much of a run's time was waiting; LEADLINE_KIND_TIMES=1 adds the kinds."""

import os
import time
from collections import defaultdict
from typing import Any, Final

import pytest

from tests.support.run.kinds import TESTS, kind_of

_STARTED: Final = time.monotonic()


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

    def __init__(self) -> None:
        self._cpu_seconds = 0.0
        self._wall_seconds = 0.0
        self._idle, self._total = _cpu_ticks()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["seconds"] = (time.process_time(), time.monotonic() - _STARTED)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        cpu, wall = getattr(node, "workeroutput", {}).get("seconds", (0.0, 0.0))
        self._cpu_seconds += cpu
        self._wall_seconds += wall

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
        if os.environ.get("LEADLINE_KIND_TIMES") == "1":
            _print_kinds(terminalreporter)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Timing())


def _print_kinds(terminalreporter: Any) -> None:
    """Prints the items and seconds of each kind of test, and the seconds of the slowest files."""
    kinds: dict[str, float] = defaultdict(float)
    files: dict[str, float] = defaultdict(float)
    items: dict[str, set[str]] = defaultdict(set)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if not isinstance(report, pytest.TestReport):
                continue
            file = report.nodeid.partition("::")[0]
            kind = kind_of(TESTS.parent / file)
            kinds[kind] += report.duration
            files[file] += report.duration
            items[kind].add(report.nodeid)
    for kind, seconds in sorted(kinds.items()):
        terminalreporter.write_line(f"{seconds:8.1f} s  {len(items[kind]):5} items  {kind}")
    for file, seconds in sorted(files.items(), key=lambda pair: -pair[1])[:40]:
        terminalreporter.write_line(f"{seconds:8.1f} s  {file}")
