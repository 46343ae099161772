"""Row structs of results that other features or layers use, and their constants."""

import msgspec

from ..core.instant import Instant


class RepairRequest(msgspec.Struct, frozen=True):
    """Range whose figures were computed before a late result was known."""

    org: int
    shard: int
    monitor: int
    from_at: Instant
    to_at: Instant
    reason: str = "late_result"
