"""Row structs of results that other features or layers use, and their constants."""

import msgspec

from ..core.instant import Instant


class RepairRequest(msgspec.Struct, frozen=True):
    """A stretch whose figures were made before something about it was known."""

    org: int
    shard: int
    monitor: int
    from_at: Instant
    to_at: Instant
    reason: str = "late_result"
