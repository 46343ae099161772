"""Prints a failure in about 40 lines: the assertion, and the last log lines of the daemons.

`LEADLINE_WHOLE_FAILURES=1` prints everything that pytest has.
"""

import os
import traceback
from collections.abc import Generator
from typing import Any, Final

import pytest

from tests.support.processes import daemon_process

IS_SHORT: Final = os.environ.get("LEADLINE_WHOLE_FAILURES") != "1"
# The first lines name the test and its place, the last ones the assertion.
FIRST_LINES: Final = 6
LAST_LINES: Final = 16
SECTION_LINES: Final = 4
LOG_LINES: Final = 8
LINE_CHARACTERS: Final = 300


def shortened(text: str, first: int, last: int) -> str:
    """Keeps the `first` and `last` lines, and inserts the number of lines that it leaves out."""
    lines = [
        line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]}…"
        for line in text.splitlines()
    ]
    left_out = len(lines) - first - last
    if left_out <= 1:
        return "\n".join(lines)
    note = f"… {left_out} lines, shown with LEADLINE_WHOLE_FAILURES=1"
    return "\n".join([*lines[:first], note, *lines[len(lines) - last :]])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    daemon_process.logs_of_ended.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        if IS_SHORT and call.excinfo is not None:
            _shorten(report, call.excinfo.value)
        logs = daemon_process.last_log_lines(LOG_LINES)
        report.sections += [
            (f"log of {name}", shortened(text, 0, LOG_LINES)) for name, text in logs
        ]
    return report


def _shorten(report: Any, error: BaseException) -> None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    # pytest takes the first line for its summary.
    cause = "".join(traceback.format_exception_only(error)).splitlines()[0]
    text = shortened(report.longreprtext, FIRST_LINES, LAST_LINES)
    report.longrepr = f"{cause[:LINE_CHARACTERS]}\n\n{text}"
    report.sections[:] = [
        (title, shortened(text, 0, SECTION_LINES)) for title, text in report.sections
    ]
