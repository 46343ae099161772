"""Fixtures: pools, migrations and partitions are tested on a database without rows."""

import pytest


@pytest.fixture
def template(migrated: str) -> str:
    """The database of each test has every migration applied, and no rows."""
    return migrated
