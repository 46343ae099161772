"""JSON bodies of notifications: mail."""

import msgspec
from msgspec import UNSET, UnsetType

from ...wire.schema import RequestSchema, Schema, SecretText


class MailSettingsView(Schema, frozen=True, kw_only=True):
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


class SetMailSettings(RequestSchema, frozen=True, kw_only=True):
    """The whole of it: what is left out is as the configuration has it. A password that is left
    out or blank stays, unless it would go to another server or for another account."""

    enabled: bool
    smtp_host: str | UnsetType = UNSET
    smtp_port: int | UnsetType = UNSET
    smtp_username: str | UnsetType = UNSET
    smtp_password: SecretText | UnsetType = UNSET
    from_: str | UnsetType = msgspec.field(name="from", default=UNSET)
    public_base_url: str | UnsetType = UNSET
