"""Keeps Python's garbage collector away from the modules and tests that pytest collected.

They live as long as the process, and the collector took a tenth of its time to visit them.
"""

import gc

import pytest

gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """Ends the pause in every process. The distributing process collects no tests."""
    gc.freeze()
    gc.enable()
