"""Row structs of notifications that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant


class ChannelRow(msgspec.Struct, frozen=True):
    """`config` is JSON text; a secret that is set stands in it as a blank."""

    org: int
    id: int
    uid: UUID
    project: int
    project_uid: UUID
    type: str
    name: str
    config: str
    config_sealed: bytes | None
    enabled: bool
    created_at: Instant


class WebhookRow(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    org_uid: UUID
    project: int | None
    project_uid: UUID | None
    url: str
    secret_sealed: bytes
    enabled: bool
    creator_uid: UUID | None
    creator_email: str | None
    created_at: Instant
