"""JSON bodies of monitors: defaults."""

from msgspec import UNSET, UnsetType

from ....storage.monitors.rules.monitor_defaults import BUILT_IN
from ...wire.schema import RequestSchema, Schema


class MonitorDefaults(Schema, frozen=True, kw_only=True):
    """`configured` says that somebody has set them."""

    configured: bool
    interval_seconds: int
    timeout_seconds: int
    retries: int
    failure_threshold: int
    renotify_seconds: int
    auto_incident: bool


class PutMonitorDefaults(RequestSchema, frozen=True, kw_only=True):
    """All of them: what is left out is as Leadline has it. `configured` is passed over."""

    configured: bool | UnsetType = UNSET
    interval_seconds: int = BUILT_IN.interval_seconds
    timeout_seconds: int = BUILT_IN.timeout_seconds
    retries: int = BUILT_IN.retries
    failure_threshold: int = BUILT_IN.failure_threshold
    renotify_seconds: int = BUILT_IN.renotify_seconds
    auto_incident: bool = BUILT_IN.auto_incident
