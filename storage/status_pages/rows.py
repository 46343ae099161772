"""Row structs of status pages that other features or layers use, and their constants."""

from uuid import UUID

import msgspec

from ..core.instant import Instant
from .rules.branding import PageBranding


class ComponentBinding(msgspec.Struct, frozen=True, kw_only=True):
    """Binding of a component: the one of the three fields that `source` names."""

    source: str
    monitor: int | None = None
    service: int | None = None
    manual_status: str | None = None


class ComponentRow(msgspec.Struct, frozen=True):
    """Component of a status page. `home` is the project of its monitor or service."""

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
    show_latency: bool
    monitor_type: str | None

    @property
    def is_lost(self) -> bool:
        """True if the monitor or the service of the component was deleted."""
        own = {"monitor": self.monitor, "service": self.service}
        return self.source in own and own[self.source] is None

    @property
    def bound(self) -> ComponentBinding:
        return ComponentBinding(
            source=self.source,
            monitor=self.monitor,
            service=self.service,
            manual_status=self.manual_status,
        )


class BrandedRow(msgspec.Struct, frozen=True):
    """First columns of a row that contains the branding of a status page."""

    accent_color: str
    logo_url: str
    footer_text: str
    support_url: str

    @property
    def branding(self) -> PageBranding:
        return PageBranding(
            accent_color=self.accent_color,
            logo_url=self.logo_url,
            footer_text=self.footer_text,
            support_url=self.support_url,
        )


class DomainClaim(msgspec.Struct, frozen=True):
    """Domain of a page whose proof is missing. `reason` is that of the last check."""

    domain: str
    token: str
    checked_at: Instant | None
    reason: str | None


class PageRow(BrandedRow, frozen=True):
    """Status page. `project` is None for a page of an organization.

    Only an unlisted page has a token. `domain` serves the page. It is not proved if an earlier
    version set it.
    """

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
    is_domain_proved: bool
    claim_domain: str | None
    claim_token: str | None
    claim_checked_at: Instant | None
    claim_reason: str | None
    time_zone: str
    language: str

    @property
    def claim(self) -> DomainClaim | None:
        if self.claim_domain is None or self.claim_token is None:
            return None
        return DomainClaim(
            self.claim_domain, self.claim_token, self.claim_checked_at, self.claim_reason
        )
