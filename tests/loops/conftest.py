"""The small world of tests that need a database."""

from collections.abc import AsyncIterator, Iterator

import pytest
import trio

from tests.conftest import Databases
from tests.world import World, make_world, small_world


@pytest.fixture(scope="session")
def template(databases: Databases, migrated: str) -> Iterator[str]:
    """The name of a migrated database that contains the small world."""
    dsn = databases.make(migrated)
    trio.run(make_world, dsn)
    yield databases.name_of(dsn)
    databases.drop(dsn)


@pytest.fixture
async def world(dsn: str) -> AsyncIterator[World]:
    async with small_world(dsn) as made:
        yield made
