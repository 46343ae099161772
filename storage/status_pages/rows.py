"""Row structs of status pages that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant


class ComponentBinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a component shows: one of the three, as its source says."""

    source: str
    monitor: int | None = None
    service: int | None = None
    manual_status: str | None = None


class ComponentRow(msgspec.Struct, frozen=True):
    """`home` is the project of what it is bound to."""

    org: int
    id: int
    uid: UUID
    org_uid: UUID
    page: int
    page_uid: UUID
    name: str
    description: str
    group: str
    position: int
    source: str
    monitor: int | None
    monitor_uid: UUID | None
    service: int | None
    service_uid: UUID | None
    manual_status: str | None
    home: int | None
    home_uid: UUID | None
    revision: int
    created_at: Instant
    updated_at: Instant

    @property
    def bound(self) -> ComponentBinding:
        return ComponentBinding(
            source=self.source,
            monitor=self.monitor,
            service=self.service,
            manual_status=self.manual_status,
        )


class PageRow(msgspec.Struct, frozen=True):
    """`project` is None for a page of the whole organization; the token is that of an unlisted
    one."""

    org: int
    id: int
    uid: UUID
    org_uid: UUID
    project: int | None
    project_uid: UUID | None
    slug: str
    title: str
    visibility: str
    domain: str | None
    token_ciphertext: bytes | None
    generation: int
    created_at: Instant
    updated_at: Instant
