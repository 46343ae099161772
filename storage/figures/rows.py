"""Row structs of figures that other features or layers use, and their constants."""

import msgspec

from ..core.instant import Instant


class DueRepair(msgspec.Struct, frozen=True):
    org: int
    id: int
    shard: int
    monitor: int
    from_at: Instant
    to_at: Instant
    attempts: int
