"""Public pages are tested on a database that contains the cast."""

import pytest


@pytest.fixture(scope="session")
def template(cast_template: str) -> str:
    """Each test's database contains the cast."""
    return cast_template
