"""Marks the tests of pure rules."""

from pathlib import Path

import pytest

from tests.effort import IS_SOAK


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of rules; a soak run selects them too, with more examples."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.rule)
            if IS_SOAK:
                item.add_marker(pytest.mark.soak)
