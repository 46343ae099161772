"""Row structs of scheduling that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant


class PresenceRow(msgspec.Struct, frozen=True):
    process: UUID
    host: str
    roles: list[str]
    # Where it probes; the first is the one that a process of the version before would name.
    regions: list[str]
    version: str
    from_at: Instant
    through_at: Instant
