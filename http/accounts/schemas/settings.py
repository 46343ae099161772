"""Bodies of what is set for the whole installation."""

import msgspec
from msgspec import UNSET, UnsetType

from ....storage.accounts.rules.auth_policy import RequireTotp
from ....storage.monitors.rules.monitor_defaults import BUILT_IN
from ....storage.status_pages.rules.branding import Level
from ...wire.schema import Given, InstantText, SecretText, Shape


class Announcement(Shape, frozen=True, kw_only=True):
    """It stands on every public page while it is enabled."""

    enabled: bool
    text: str
    level: Level


class PublicBranding(Shape, frozen=True, kw_only=True):
    """What is empty is as Leadline has it. An announcement that is not enabled lacks."""

    product_name: str
    accent_color: str
    logo_url: str
    footer_text: str
    support_url: str
    announcement: Announcement | UnsetType = UNSET


class Branding(PublicBranding, frozen=True, kw_only=True):
    """`configured` says that somebody has set it."""

    configured: bool


class GivenAnnouncement(Given, frozen=True, kw_only=True):
    enabled: bool = False
    text: str = ""
    level: Level = Level.INFO


class PutBranding(Given, frozen=True, kw_only=True):
    """The whole of it: what is left out is as Leadline has it. `configured` is passed over, so that
    what was read can be given back. The colour is #rrggbb, and URLs are https."""

    configured: bool | UnsetType = UNSET
    product_name: str = ""
    accent_color: str = ""
    logo_url: str = ""
    footer_text: str = ""
    support_url: str = ""
    announcement: GivenAnnouncement | UnsetType = UNSET


class MonitorDefaults(Shape, frozen=True, kw_only=True):
    """`configured` says that somebody has set them."""

    configured: bool
    interval_seconds: int
    timeout_seconds: int
    retries: int
    failure_threshold: int
    renotify_seconds: int
    auto_incident: bool


class PutMonitorDefaults(Given, frozen=True, kw_only=True):
    """All of them: what is left out is as Leadline has it. `configured` is passed over."""

    configured: bool | UnsetType = UNSET
    interval_seconds: int = BUILT_IN.interval_seconds
    timeout_seconds: int = BUILT_IN.timeout_seconds
    retries: int = BUILT_IN.retries
    failure_threshold: int = BUILT_IN.failure_threshold
    renotify_seconds: int = BUILT_IN.renotify_seconds
    auto_incident: bool = BUILT_IN.auto_incident


class AuthPolicy(Shape, frozen=True, kw_only=True):
    """`configured` says that somebody has set it. No domain is named where any may be."""

    configured: bool
    min_password_len: int
    session_ttl_seconds: int
    require_totp: RequireTotp
    allowed_email_domains: list[str]


class PutAuthPolicy(Given, frozen=True, kw_only=True):
    """The whole of it: what is left out is as the configuration has it. `configured` is passed
    over."""

    configured: bool | UnsetType = UNSET
    min_password_len: int | UnsetType = UNSET
    session_ttl_seconds: int | UnsetType = UNSET
    require_totp: RequireTotp = RequireTotp.NONE
    allowed_email_domains: list[str] = []


class GlobalSilence(Shape, frozen=True, kw_only=True):
    """`enabled` while people are told of nothing new; without `until` it lasts until somebody lifts
    it."""

    enabled: bool
    until: InstantText | UnsetType = UNSET


class Alerting(Shape, frozen=True, kw_only=True):
    """`configured` says that somebody has set it."""

    configured: bool
    global_silence: GlobalSilence


class GivenGlobalSilence(Given, frozen=True, kw_only=True):
    """`until` lies ahead, at most 366 days."""

    enabled: bool = False
    until: InstantText | UnsetType = UNSET


class PutAlerting(Given, frozen=True, kw_only=True):
    """The whole of it; `configured` is passed over."""

    configured: bool | UnsetType = UNSET
    global_silence: GivenGlobalSilence | UnsetType = UNSET


class MailSettingsView(Shape, frozen=True, kw_only=True):
    """`configured` says that somebody has set it, `deliverable` that letters with links can be
    sent. The password is told to nobody."""

    configured: bool
    enabled: bool
    smtp_host: str
    smtp_port: int
    smtp_username: str
    smtp_password_set: bool
    from_: str = msgspec.field(name="from")
    public_base_url: str
    deliverable: bool


class SetMailSettings(Given, frozen=True, kw_only=True):
    """The whole of it: what is left out is as the configuration has it. A password that is left
    out or blank stays, unless it would go to another server or for another account."""

    enabled: bool
    smtp_host: str | UnsetType = UNSET
    smtp_port: int | UnsetType = UNSET
    smtp_username: str | UnsetType = UNSET
    smtp_password: SecretText | UnsetType = UNSET
    from_: str | UnsetType = msgspec.field(name="from", default=UNSET)
    public_base_url: str | UnsetType = UNSET


class OIDCSettingsView(Shape, frozen=True, kw_only=True):
    """`configured` says that somebody has set it, `active` that people can sign in this way now;
    `reload_error` is why the provider could not be asked the last time. The secret is told to
    nobody."""

    configured: bool
    active: bool
    enabled: bool
    issuer: str
    client_id: str
    client_secret_set: bool
    redirect_url: str
    scopes: list[str]
    post_logout_url: str
    button_label: str
    bootstrap_admins: list[str]
    reload_error: str


class SetOIDCSettings(Given, frozen=True, kw_only=True):
    """What is left out stays as it is. A secret that is left out or blank stays, unless it would go
    to another issuer or be another client's."""

    enabled: bool
    issuer: str | UnsetType = UNSET
    client_id: str | UnsetType = UNSET
    client_secret: SecretText | UnsetType = UNSET
    redirect_url: str | UnsetType = UNSET
    scopes: list[str] | UnsetType = UNSET
    post_logout_url: str | UnsetType = UNSET
    button_label: str | UnsetType = UNSET
    bootstrap_admins: list[str] | UnsetType = UNSET
