"""How hard the rules are searched: lightly in the suite, and by `make soak` twenty times harder."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SOAK = os.environ.get("LEADLINE_SOAK") == "1"

for name, examples in (("suite", 100), ("soak", 2_000)):
    settings.register_profile(
        name, deadline=None, max_examples=examples, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("soak" if SOAK else "suite")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under soak the rules are soak tests too, so that its marker selects them."""
    for item in items:
        if SOAK and item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.soak)
