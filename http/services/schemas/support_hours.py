"""JSON bodies of support hours."""

from ...oncall.schemas import WeeklyWindow, WeeklyWindowRequest
from ...wire.schema import RequestSchema, Schema


class SupportHours(Schema, frozen=True, kw_only=True):
    """Weekly hours outside of which incidents of low urgency wait; UTC without a `timezone`."""

    timezone: str
    windows: list[WeeklyWindow]


class PutSupportHours(RequestSchema, frozen=True, kw_only=True):
    """At most 50 windows. Without a window the service has no support hours."""

    timezone: str = ""
    windows: list[WeeklyWindowRequest]
