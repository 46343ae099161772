"""JSON bodies of invitations."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ....storage.accounts.rules.access import Role
from ....storage.accounts.rules.invitation import MailState
from ...wire.schema import Email, InstantText, RequestSchema, Schema, SecretText, Words


class Invitation(Schema, frozen=True, kw_only=True):
    """Open invitation. `mail` is the state of its newest e-mail.

    `accept_url` is present in the response to a create or resend without a mail server, for the
    inviter to pass on.
    """

    id: UUID
    email: Email
    role: Role
    project_id: UUID | UnsetType = UNSET
    invited_by: str | UnsetType = UNSET
    created_at: InstantText
    expires_at: InstantText
    mail: MailState
    accept_url: Annotated[str, Meta(max_length=2_048)] | UnsetType = UNSET


class AcceptInvitation(RequestSchema, frozen=True, kw_only=True):
    """`password` creates the account of the address. An existing account needs its session."""

    display_name: Words | UnsetType = UNSET
    password: SecretText | UnsetType = UNSET
