"""JSON bodies of the times to acknowledge and to resolve the incidents of a service."""

from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from ...wire.schema import InstantText, Schema


class ResponseTime(Schema, frozen=True, kw_only=True):
    """Times of `count` incidents, from the start of the incident, in microseconds.

    A percentile is the time of one of the incidents.
    """

    count: int
    mean_us: int
    median_us: int
    p90_us: int
    longest_us: int


class ServiceResponseTimes(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Incidents of the service, and of its members at that time, that started in [from, to).

    `covered` are alerts of a storm that are not acknowledged, as the page of another alert named
    them. A time is absent if no incident has one; `withheld` states why.
    """

    service_id: UUID
    from_: InstantText
    to: InstantText
    as_of: InstantText
    incidents: int | UnsetType = UNSET
    covered: int | UnsetType = UNSET
    open: int | UnsetType = UNSET
    unacknowledged: int | UnsetType = UNSET
    incidents_withheld: str | UnsetType = UNSET
    deleted_monitors: int | UnsetType = UNSET
    time_to_acknowledge: ResponseTime | UnsetType = UNSET
    time_to_acknowledge_withheld: str | UnsetType = UNSET
    time_to_resolve: ResponseTime | UnsetType = UNSET
    time_to_resolve_withheld: str | UnsetType = UNSET


class ResponseTimesQuery(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """Both fields are required. The range is at most 366 d."""

    from_: str | None = None
    to: str | None = None
