"""Properties of rules are tried often; no test asserts a time."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "agent", deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("agent")
