"""Row structs of mutes that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant


class MuteRow(msgspec.Struct, frozen=True):
    """Mute of a monitor, of a service, or of `matchers`, which are empty for the first two.

    `subject` is the name of the monitor or service. `author_label` is that of the user or token
    that created it.
    """

    org: int
    id: int
    uid: UUID
    project: int
    project_uid: UUID
    monitor: int | None
    monitor_uid: UUID | None
    service: int | None
    service_uid: UUID | None
    subject: str
    matchers: str
    reason: str
    starts_at: Instant
    ends_at: Instant
    author_label: str
    created_at: Instant
