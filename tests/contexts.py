"""A pytest plugin for runs under coverage: notes which test executed each line.

The context of a line is the node id of the test during whose setup, call or teardown it ran; it is
empty for what runs at import. Coverage's own `dynamic_context = test_function` follows the stack,
so it loses the tasks that a Trio test starts.
"""

from collections.abc import Generator

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
