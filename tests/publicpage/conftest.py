"""How hard properties of public pages are tried: what is made up for one takes a while."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.conftest import Databases

settings.register_profile(
    "pages",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("pages")


@pytest.fixture
def dsn(databases: Databases, cast_template: str) -> Iterator[str]:
    """A database of this test's own that contains the cast."""
    dsn = databases.make(cast_template)
    yield dsn
    databases.drop(dsn)
