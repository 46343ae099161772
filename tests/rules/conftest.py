"""Marks the tests of pure rules, and sets how many examples Hypothesis draws for each."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import IS_SOAK

settings.register_profile(
    "rules",
    deadline=None,
    max_examples=2_000 if IS_SOAK else 20,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("rules")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of rules; a soak run selects them too, with more examples."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.rule)
            if IS_SOAK:
                item.add_marker(pytest.mark.soak)
