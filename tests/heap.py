"""Keeps Python's garbage collector away from the modules and tests that pytest collected.

They live as long as the process, and the collector took a tenth of its time to visit them.
"""

import gc

import pytest

gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
