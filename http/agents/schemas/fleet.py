"""Bodies of the fleet: processes and the load of regions."""

from uuid import UUID

from msgspec import UNSET, UnsetType

from ...wire.schema import InstantText, Schema


class Presence(Schema, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Uninterrupted presence of a process. `region` is the first region that it probes in."""

    process_id: UUID
    host: str
    roles: list[str]
    region: str | UnsetType = UNSET
    version: str
    from_: InstantText
    through: InstantText


class RegionLoad(Schema, frozen=True, kw_only=True):
    """Load of a region.

    `pending_jobs` counts due jobs without a claim; `lag_seconds` is the waiting time of the oldest.
    """

    name: str
    live: bool
    workers: int
    agents: int
    pending_jobs: int
    lag_seconds: float | UnsetType = UNSET


class Fleet(Schema, frozen=True, kw_only=True):
    processes: list[Presence]
    regions: list[RegionLoad]
