"""How hard the rules are searched: lightly in the suite, harder under LEADLINE_SOAK=1."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "soak", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("soak" if os.environ.get("LEADLINE_SOAK") == "1" else "suite")
