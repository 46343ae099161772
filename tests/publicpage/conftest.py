"""How hard properties of public pages are tried: what is made up for one takes a while."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "pages",
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("pages")
