"""Bodies of the fleet: what runs where, and what waits."""

from uuid import UUID

from msgspec import UNSET, UnsetType

from ...wire.schema import InstantText, Schema


class Presence(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """One process, from when to when it was there without a break. `region` is the first of those
    that it probes in."""

    process_id: UUID
    host: str
    roles: list[str]
    region: str | UnsetType = UNSET
    version: str
    from_: InstantText
    through: InstantText


class RegionLoad(Schema, frozen=True, kw_only=True):
    """`pending_jobs` are due and claimed by nobody; `lag_seconds` is how long the oldest of them
    has waited."""

    name: str
    live: bool
    workers: int
    agents: int
    pending_jobs: int
    lag_seconds: float | UnsetType = UNSET


class Fleet(Schema, frozen=True, kw_only=True):
    processes: list[Presence]
    regions: list[RegionLoad]
