"""Bodies of organizations, projects, members, their audit, what is found, and the regions."""

from uuid import UUID

from msgspec import UNSET, UnsetType

from ....storage.accounts.rules.access import Role
from ...wire.schema import Email, InstantText, Name, RequestSchema, Schema, SlugText


class Organization(Schema, frozen=True, kw_only=True):
    id: UUID
    slug: str
    name: str
    created_at: InstantText
    updated_at: InstantText


class CreateOrganization(RequestSchema, frozen=True, kw_only=True):
    slug: SlugText
    name: Name


class Rename(RequestSchema, frozen=True, kw_only=True):
    """A slug is never changed; the name may be."""

    name: Name


class Project(Schema, frozen=True, kw_only=True):
    id: UUID
    org_id: UUID
    slug: str
    name: str
    created_at: InstantText
    updated_at: InstantText


class CreateProject(RequestSchema, frozen=True, kw_only=True):
    slug: SlugText
    name: Name


class Membership(Schema, frozen=True, kw_only=True):
    """Without `project_id` it holds in the whole organization. A token's has no id and no user."""

    id: UUID | UnsetType = UNSET
    user_id: UUID | UnsetType = UNSET
    org_id: UUID
    project_id: UUID | UnsetType = UNSET
    role: Role
    created_at: InstantText | UnsetType = UNSET


class Member(Membership, frozen=True, kw_only=True):
    email: str
    display_name: str
    last_active_at: InstantText | UnsetType = UNSET


class AddMember(RequestSchema, frozen=True, kw_only=True):
    """One of `user_id` and `email` names the person."""

    user_id: UUID | UnsetType = UNSET
    email: Email | UnsetType = UNSET
    project_id: UUID | UnsetType = UNSET
    role: Role


class UpdateMember(RequestSchema, frozen=True, kw_only=True):
    role: Role


class AuditEntry(Schema, frozen=True, kw_only=True):
    """`org_id` lacks on what belongs to no organization; `actor_user_id` on what a token wrote
    whose maker is gone. `actor_name` is how the actor was called when it was written."""

    id: UUID
    org_id: UUID | UnsetType = UNSET
    actor_user_id: UUID | UnsetType = UNSET
    actor_email: str | UnsetType = UNSET
    actor_name: str
    via_token: bool
    action: str
    target: str
    created_at: InstantText
