"""The real app on a database of each test's own, with a fixed cast."""

from collections.abc import AsyncIterator

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.http.cast import Api, open_api
from tests.http.gating import PLENTY, Gated, open_gated


@pytest.fixture(scope="session")
def template(cast_template: str) -> str:
    """Each test's database contains the cast."""
    return cast_template


@pytest.fixture
async def api(pool: Pool, passwords: Passwords) -> AsyncIterator[Api]:
    async with open_api(pool, FROZEN_NOW, passwords) as made:
        yield made


@pytest.fixture
async def gated(dsn: str, passwords: Passwords) -> AsyncIterator[Gated]:
    """As `api`, with a clock to be set; what the gate decided is recomputed at the end."""
    async with open_gated(dsn, passwords, PLENTY) as made:
        yield made
