"""JSON bodies of channels and webhooks. Responses mask secrets, except that of a new webhook."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.notifications.rules.webhook import URL_LONGEST
from ...wire.schema import InstantText, Name, RequestSchema, Schema, SecretText

ChannelType = Literal[
    "webhook",
    "email",
    "slack",
    "discord",
    "teams",
    "telegram",
    "ntfy",
    "pagerduty",
    "opsgenie",
    "apprise",
]
# The sender of each type defines its settings and the length of each value.
Config = Annotated[dict[str, Annotated[str, Meta(max_length=4_096)]], Meta(max_length=16)]
UrlText = Annotated[str, Meta(max_length=URL_LONGEST, extra_json_schema={"format": "uri"})]


class NotificationChannel(Schema, frozen=True, kw_only=True):
    """Secret values of `config` are masked. `url_ref` names a project secret in place of `url`.

    `managed_by` is the bundle provider. It is absent if users edit the channel.

    `takes_tickets`: it receives tickets: incidents of impact none or minor, and burn rules of
    severity ticket. While a project has an enabled one, tickets page no person.

    `takes_warnings`: it gets the warnings of the monitors of its project.
    """

    id: UUID
    project_id: UUID
    type: str
    name: str
    config: dict[str, str]
    enabled: bool
    takes_tickets: bool
    takes_warnings: bool
    managed_by: str | UnsetType = UNSET
    created_at: InstantText


class CreateNotificationChannel(RequestSchema, frozen=True, kw_only=True):
    type: ChannelType
    name: Name
    config: Config
    enabled: bool = True
    takes_tickets: bool = False
    takes_warnings: bool = False


class PatchNotificationChannel(RequestSchema, frozen=True, kw_only=True):
    """An absent setting is unchanged, as is a secret that is empty or the mask.

    If the host or port changes, the secrets must be given again.
    """

    name: Name | UnsetType = UNSET
    config: Config | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET
    takes_tickets: bool | UnsetType = UNSET
    takes_warnings: bool | UnsetType = UNSET


class AttachChannel(RequestSchema, frozen=True, kw_only=True):
    channel_id: UUID


class Tested(Schema, frozen=True, kw_only=True):
    """`reason` is one of a bounded set, optionally with a status. It can be present with `ok`."""

    ok: bool
    reason: str | UnsetType = UNSET


class MessageTemplates(RequestSchema, frozen=True, kw_only=True):
    """Templates of a channel to preview. An empty one leaves the words of Leadline."""

    title_template: Annotated[str, Meta(max_length=4_096)] = ""
    text_template: Annotated[str, Meta(max_length=4_096)] = ""


class MessagePreview(Schema, frozen=True, kw_only=True):
    """An example of a message in the words of the templates, without the link to answer it."""

    title: str
    lines: list[str]
    link: str


class Webhook(Schema, frozen=True, kw_only=True):
    """`secret` is present only in the response to a create.

    `secret_ref` names the secret of the project that signs in place of an own one. `managed_by` is
    the bundle provider. It is absent if people edit the webhook.
    """

    id: UUID
    org_id: UUID
    project_id: UUID | UnsetType = UNSET
    url: str
    secret: str | UnsetType = UNSET
    secret_ref: str | UnsetType = UNSET
    enabled: bool
    managed_by: str | UnsetType = UNSET
    created_by: UUID | UnsetType = UNSET
    created_by_email: str | UnsetType = UNSET
    created_at: InstantText


class CreateWebhook(RequestSchema, frozen=True, kw_only=True):
    url: UrlText
    secret: SecretText | UnsetType = UNSET
    project_id: UUID | UnsetType = UNSET
    enabled: bool = True


class ToggleEnabled(RequestSchema, frozen=True, kw_only=True):
    enabled: bool
