"""Row structs of results that other features or layers use, and their constants."""

from uuid import UUID

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


class PushBodyRow(msgspec.Struct, frozen=True):
    """Beginning of the body of a push, encrypted. `up` is None for a mark."""

    uid: UUID
    at: Instant
    kind: str
    up: bool | None
    run: str
    is_cut: bool
    body_ciphertext: bytes
