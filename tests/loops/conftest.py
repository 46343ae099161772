"""The small world of tests that need a database."""

from collections.abc import AsyncIterator

import pytest

from tests.world import World, small_world


@pytest.fixture(scope="session")
def template(world_template: str) -> str:
    """Each test's database contains the small world."""
    return world_template


@pytest.fixture
async def world(dsn: str) -> AsyncIterator[World]:
    async with small_world(dsn) as made:
        yield made
