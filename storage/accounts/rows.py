"""Row structs of accounts that other features or layers use, and their constants."""

from typing import Final
from uuid import UUID

import msgspec

from ..core.instant import MINUTE, Instant
from ..core.key import ProjectKey

INSTANCE = 0


FLOW_US: Final = 10 * MINUTE


class FlowRow(msgspec.Struct, frozen=True):
    """Sign-on in progress.

    `redirect` is a path of this server. `link_user` is the account that gets the identity, None for
    a sign-in.
    """

    issuer: str
    nonce: str
    verifier: str
    redirect: str
    link_user: int | None


class ProjectRow(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    org_uid: UUID
    slug: str
    name: str
    created_at: Instant
    updated_at: Instant

    @property
    def key(self) -> ProjectKey:
        return ProjectKey((self.org, self.id))


class OrganizationRow(msgspec.Struct, frozen=True):
    id: int
    uid: UUID
    slug: str
    name: str
    created_at: Instant
    updated_at: Instant


class SessionRow(msgspec.Struct, frozen=True):
    uid: UUID
    user_id: int
    created_at: Instant
    last_seen_at: Instant
    expires_at: Instant
    client: str = ""


class TokenRow(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    org_uid: UUID
    project: int | None
    project_uid: UUID | None
    name: str
    role: str
    actions: list[str] | None
    creator_uid: UUID | None
    creator_email: str | None
    created_at: Instant
    last_used_at: Instant | None
    # The instant from which the token is refused, None for a token without an end.
    expires_at: Instant | None
    # The first characters of the secret, empty for a token of an earlier version.
    start: str
    # The end that a user chose, None for a token without an end.
    chosen_expiry: Instant | None
    # A rotation made a successor, and set the end.
    is_rotated: bool

    def is_valid_at(self, now: Instant) -> bool:
        return self.expires_at is None or self.expires_at > now


class InvitationRow(msgspec.Struct, frozen=True):
    """Invitation with the names of its organization, project and inviter.

    `mail_due_at` is None if no e-mail waits, `mailed_at` the instant of the last one.
    """

    org: int
    id: int
    uid: UUID
    org_uid: UUID
    organization: str
    project: int | None
    project_uid: UUID | None
    project_name: str | None
    email: str
    role: str
    inviter: str | None
    created_at: Instant
    expires_at: Instant
    mail_due_at: Instant | None
    mailed_at: Instant | None
    attempts: int
    # Name that the page of the invitation suggests.
    display_name: str


class UserRow(msgspec.Struct, frozen=True):
    id: int
    uid: UUID
    email: str
    display_name: str
    is_global_admin: bool
    password: str | None
    created_at: Instant
    updated_at: Instant
    last_active_at: Instant | None
    email_verified: bool
    oidc_sub: str | None


class MembershipRow(msgspec.Struct, frozen=True):
    """Membership with names and ids of its user, organization and project."""

    org: int
    id: int
    uid: UUID
    org_uid: UUID
    user_id: int
    user_uid: UUID
    project: int | None
    project_uid: UUID | None
    role: str
    created_at: Instant
    email: str
    display_name: str
    last_active_at: Instant | None
    # Issuer whose groups gave the membership, None if a person gave it.
    group_issuer: str | None


class GroupRoleRow(msgspec.Struct, frozen=True):
    """Rule that gives a group of an identity provider a role, with the names of its place."""

    uid: UUID
    issuer: str
    claim: str
    value: str
    org_uid: UUID
    org_name: str
    project_uid: UUID | None
    project_name: str | None
    role: str
    created_at: Instant


class SettingRow(msgspec.Struct, frozen=True):
    """Setting. `value` is JSON text, `secret_ciphertext` is bound to `uid`."""

    uid: UUID
    value: str
    secret_ciphertext: bytes | None


class ResetRequestRow(msgspec.Struct, frozen=True):
    """Request of a password reset. `attempts` includes the current one."""

    address: str
    attempts: int


class OperationRow(msgspec.Struct, frozen=True):
    """An operation. `done` and `total` count objects. `result` and `progress` are JSON."""

    uid: UUID
    kind: str
    state: str
    org: int
    project: int | None
    started_by: UUID | None
    done: int
    total: int
    created_at: Instant
    finished_at: Instant | None
    error: str | None
    result: str | None = None
    # Why a running application of a bundle is to stop.
    stopping: str | None = None
    # Log of an application of a bundle, see `ApplyLog`.
    progress: str | None = None


class DeletionCounts(msgspec.Struct, frozen=True):
    """What a deletion deletes. `results` are the stored heartbeats."""

    projects: int
    monitors: int
    services: int
    incidents: int
    status_pages: int
    results: int

    @property
    def objects(self) -> int:
        """Returns the number of objects that are deleted one by one, and the projects."""
        return self.projects + self.monitors + self.services


class ManagedObject(msgspec.Struct, frozen=True):
    """An object of a bundle or of a file provider. `many` counts all such objects."""

    kind: str
    name: str
    managed_by: str
    uid: UUID
    many: int
