"""JSON bodies of the own contact methods and personal rules. Responses mask secrets."""

from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ....storage.notifications.rules.contact_method import LABEL_LONGEST
from ....storage.notifications.rules.personal_rules import DELAY_SECONDS, RULES_MOST
from ...wire.schema import InstantText, RequestSchema, Schema
from .notifications import Config

ContactKind = Literal["email", "ntfy", "telegram", "slack", "mattermost", "webhook", "sms", "voice"]
Label = Annotated[str, Meta(min_length=1, max_length=LABEL_LONGEST)]
CLOCK: Final = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
Clock = Annotated[str, Meta(pattern=CLOCK, max_length=5)]


class ContactMethod(Schema, frozen=True, kw_only=True):
    """Contact method of the caller. Other people see the kind and the label only.

    Without `verified_at` it receives nothing but its code. `proposed_by` names the organization and
    the project whose bundle proposed it.
    """

    id: UUID
    kind: str
    label: str
    config: dict[str, str]
    enabled: bool
    verified_at: InstantText | UnsetType = UNSET
    created_at: InstantText
    proposed_by: str | UnsetType = UNSET


class CreateContactMethod(RequestSchema, frozen=True, kw_only=True):
    """The kind defines the settings of `config`, which cannot be changed later."""

    kind: ContactKind
    label: Label
    config: Config


class PatchContactMethod(RequestSchema, frozen=True, kw_only=True):
    label: Label | UnsetType = UNSET
    enabled: bool | UnsetType = UNSET


class ContactCode(RequestSchema, frozen=True, kw_only=True):
    code: Annotated[str, Meta(max_length=64)]


class ContactRule(RequestSchema, frozen=True, kw_only=True):
    """Notifies a contact method `delay_seconds` after the page, unless it is acknowledged."""

    method_id: UUID
    delay_seconds: Annotated[int, Meta(ge=DELAY_SECONDS[0], le=DELAY_SECONDS[1])] = 0


class QuietHoursBody(RequestSchema, frozen=True, kw_only=True):
    """Local times in which no ticket is notified. The end can be on the next day."""

    from_: Clock = msgspec.field(name="from")
    until: Clock
    time_zone: str


Rules = Annotated[list[ContactRule], Meta(max_length=RULES_MOST)]


class PersonalRulesBody(RequestSchema, frozen=True, kw_only=True):
    """Personal rules: `page` for the impacts major and critical, `ticket` for the others.

    Without a rule for a usable method, all usable methods are notified at once. Quiet hours delay
    tickets and never pages.
    """

    page: Rules = []
    ticket: Rules = []
    quiet_hours: QuietHoursBody | None = None
