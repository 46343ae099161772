"""JSON bodies of organizations, projects, operations, members and audit logs."""

from typing import Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from ....storage.accounts.rules.access import Role
from ....storage.bundles.rules.bundle_diff import BundleChange
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
    """The name can change, the slug cannot."""

    name: Name


class Project(Schema, frozen=True, kw_only=True):
    id: UUID
    org_id: UUID
    slug: str
    name: str
    created_at: InstantText
    updated_at: InstantText


class DeletionCounts(Schema, frozen=True, kw_only=True):
    """Numbers of the objects that a deletion deletes. `results` are the stored heartbeats."""

    projects: int
    monitors: int
    services: int
    incidents: int
    status_pages: int
    results: int


class BundlePlan(Schema, frozen=True, kw_only=True):
    """Plan of a bundle, or the result of applying it. `applied` is false for a plan.

    `changes` has an entry for each object of the bundle, and for each orphan of its file.
    """

    changes: list[BundleChange]
    applied: bool


class OperationFailure(Schema, frozen=True, kw_only=True):
    """Monitor that refused a bulk action. `code` is the code of the refusal."""

    name: str
    code: str
    message: str


class Operation(Schema, frozen=True, kw_only=True):
    """Work that continues after the answer. `done` and `total` count objects.

    `error` is the reason of a failure, and `result` the answer of a bundle that was applied. A
    bulk action on monitors succeeds also if single monitors refuse it: `failures` has the first
    100, and `failed` is their number. `act` is its action, `changed` counts the monitors that it
    changed, and `undone_by` is the operation that undoes it.
    """

    id: UUID
    kind: Literal["bundle_apply", "project_delete", "organization_delete", "monitors_edit"]
    state: Literal["running", "succeeded", "failed"]
    done: int
    total: int
    created_at: InstantText
    finished_at: InstantText | UnsetType = UNSET
    error: str | UnsetType = UNSET
    result: BundlePlan | UnsetType = UNSET
    failed: int | UnsetType = UNSET
    failures: list[OperationFailure] | UnsetType = UNSET
    act: str | UnsetType = UNSET
    changed: int | UnsetType = UNSET
    undone_by: UUID | UnsetType = UNSET


class CreateProject(RequestSchema, frozen=True, kw_only=True):
    slug: SlugText
    name: Name


class Membership(Schema, frozen=True, kw_only=True):
    """Role in an organization, or in one project if `project_id` is present.

    The membership of an API token has no id and no user.
    """

    id: UUID | UnsetType = UNSET
    user_id: UUID | UnsetType = UNSET
    org_id: UUID
    project_id: UUID | UnsetType = UNSET
    role: Role
    created_at: InstantText | UnsetType = UNSET


# Ways to sign in: password, single sign-on, both, or none yet.
AuthType = Literal["local", "oidc", "both", "none"]


class Member(Membership, frozen=True, kw_only=True):
    """`from_group` is true if groups of the identity provider gave the membership."""

    from_group: bool
    email: str
    display_name: str
    auth_type: AuthType
    totp_enabled: bool
    last_active_at: InstantText | UnsetType = UNSET


class AddMember(RequestSchema, frozen=True, kw_only=True):
    """One of `user_id` and `email` is required."""

    user_id: UUID | UnsetType = UNSET
    email: Email | UnsetType = UNSET
    project_id: UUID | UnsetType = UNSET
    role: Role


class UpdateMember(RequestSchema, frozen=True, kw_only=True):
    role: Role


class AuditEntry(Schema, frozen=True, kw_only=True):
    """Audit log entry.

    `org_id` is absent for events outside organizations. `actor_user_id` and `actor_email` are
    absent if the user was deleted or no user acted. `actor_name` is the name of the actor at that
    time.
    """

    id: UUID
    org_id: UUID | UnsetType = UNSET
    actor_user_id: UUID | UnsetType = UNSET
    actor_email: str | UnsetType = UNSET
    actor_name: str
    via_token: bool
    action: str
    target: str
    created_at: InstantText
