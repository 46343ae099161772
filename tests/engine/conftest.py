"""Pools, migrations and partitions are tested on a database without rows."""

import pytest


@pytest.fixture
def template(migrated: str) -> str:
    """Each test's database has every migration applied, and no rows."""
    return migrated
