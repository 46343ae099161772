"""The small world of tests that need a database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.effort import IS_SOAK
from tests.world import World, small_world


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the properties, so that a soak run repeats them with more examples."""
    for item in items:
        if not IS_SOAK or not item.path.is_relative_to(Path(__file__).parent):
            continue
        if getattr(getattr(item, "function", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.soak)


@pytest.fixture(scope="session")
def template(world_template: str) -> str:
    """Each test's database contains the small world."""
    return world_template


@pytest.fixture
async def world(dsn: str) -> AsyncIterator[World]:
    async with small_world(dsn) as made:
        yield made
