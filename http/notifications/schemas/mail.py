"""JSON bodies of notifications: mail."""

import msgspec
from msgspec import UNSET, UnsetType

from ...wire.schema import RequestSchema, Schema, SecretText


class MailSettingsView(Schema, frozen=True, kw_only=True):
    """Mail settings.

    `configured` is true if an administrator has set them, `deliverable` if e-mails with links can
    be sent. The password is never returned.
    """

    configured: bool
    enabled: bool
    smtp_host: str
    smtp_port: int
    smtp_username: str
    smtp_password_set: bool
    from_: str = msgspec.field(name="from")
    public_base_url: str
    deliverable: bool
    # Reason why the stored base URL is ignored.
    public_base_url_fault: str | UnsetType = UNSET


class SetMailSettings(RequestSchema, frozen=True, kw_only=True):
    """Complete mail settings.

    An absent field gets the value of the configuration file. An absent or empty password keeps the
    stored one. It is required if the server, its port or the user name changes.
    """

    enabled: bool
    smtp_host: str | UnsetType = UNSET
    smtp_port: int | UnsetType = UNSET
    smtp_username: str | UnsetType = UNSET
    smtp_password: SecretText | UnsetType = UNSET
    from_: str | UnsetType = msgspec.field(name="from", default=UNSET)
    public_base_url: str | UnsetType = UNSET
