"""A pytest plugin of `mutations.py`: notes which test executes a line, and runs some tests.

Under coverage, the context of a line is the node id of the test during whose setup, call or
teardown it ran; it is empty for a line that runs at import. Coverage's own `dynamic_context =
test_function` follows the stack, so it loses the tasks that a Trio test starts.

LEADLINE_ONLY_TESTS names a JSON file with the node ids of the tests to run, in their order. pytest
does not find the ids that contain a slash or a backslash as arguments. The node id of the last
test that failed is written to the file that LEADLINE_FAILED_TEST names.
"""

import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    measured = Coverage.current()
    if measured is not None:
        measured.switch_context(item.nodeid)
    try:
        return (yield)
    finally:
        if measured is not None:
            measured.switch_context("")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    only = os.environ.get("LEADLINE_ONLY_TESTS")
    if only:
        place = {node_id: n for n, node_id in enumerate(json.loads(Path(only).read_text()))}
        items[:] = [item for item in items if item.nodeid in place]
        items.sort(key=lambda item: place[item.nodeid])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    path = os.environ.get("LEADLINE_FAILED_TEST")
    if path and report.failed:
        Path(path).write_text(report.nodeid)
