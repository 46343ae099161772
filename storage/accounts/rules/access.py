"""Access decisions: one function that all views and transactions call.

Its three results become 200, 404 and 403. A caller without membership cannot learn that the object
exists; a member with an insufficient role can. Authentication (401) is checked before.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from uuid import UUID

# Ids can be database numbers or API UUIDs, if one comparison never mixes them.
Key = int | UUID


class Role(StrEnum):
    VIEWER = "viewer"
    EDITOR = "editor"
    PROJECT_ADMIN = "project_admin"
    ORG_ADMIN = "org_admin"


class Rank(IntEnum):
    """Order of roles."""

    NONE = 0
    VIEWER = 1
    EDITOR = 2
    PROJECT_ADMIN = 3
    ORG_ADMIN = 4


class CredentialKind(StrEnum):
    """Type of credential of a principal."""

    SESSION = "session"
    TOKEN = "token"
    JWT = "jwt"
    AGENT = "agent"


class Grant(StrEnum):
    """Values of an API token's `actions`. Such a list only narrows its role."""

    GATE_EVALUATE = "gate:evaluate"
    CHANGE_RECORD = "change:record"


class Need(StrEnum):
    """Access requirement of a route, with the letters of the route table."""

    NOBODY = "-"
    ANYONE = "*"
    VIEWER = "V"
    EDITOR = "E"
    PROJECT_ADMIN = "A"
    ORG_ADMIN = "O"
    GLOBAL_ADMIN = "G"
    SESSION = "S"
    AGENT = "T"


class AccessDecision(StrEnum):
    ALLOWED = "allowed"
    HIDDEN = "hidden"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Membership:
    """Role in an organization or in one of its projects."""

    organization: Key
    project: Key | None
    role: Role


@dataclass(frozen=True, slots=True)
class Scope:
    """Scope of a request: a project of an organization, or the organization itself."""

    organization: Key
    project: Key | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """Actor of a change, stored with it independently of later changes of the account."""

    label: str
    user: UUID | None
    via_token: bool


@dataclass(frozen=True, slots=True)
class Principal:
    """Authenticated caller.

    A token has exactly one membership, and `user` is its creator or None. `actions` is None if only
    the role decides. `owes_second_factor` marks a session of an account that must enrol TOTP and
    has not.
    """

    kind: CredentialKind
    memberships: tuple[Membership, ...] = ()
    user: Key | None = None
    is_global_admin: bool = False
    actions: frozenset[Grant] | None = None
    owes_second_factor: bool = False
    label: str = ""
    # Id for counters such as rate limits: that of the user or of the token.
    uid: UUID | None = None
    # How the console shows times to the user of a session.
    time_zone: str = "UTC"
    hour_clock: int = 24
    # File provider on whose behalf the principal writes; blank for users.
    provider: str = ""

    @property
    def via_token(self) -> bool:
        return self.kind is CredentialKind.TOKEN

    @property
    def actor(self) -> Actor:
        user = self.user if isinstance(self.user, UUID) else None
        return Actor(self.label, user, self.via_token)

    @property
    def is_everywhere_org_admin(self) -> bool:
        """Returns whether this is a global admin. Only a session can be, not a token or JWT."""
        return self.is_global_admin and self.kind is CredentialKind.SESSION


@dataclass(frozen=True, slots=True)
class Permission:
    """Permission of a route beyond its need.

    `grant` allows tokens narrowed to it. `basic` allows every token (`/me`, `/version`).
    `tokenless` refuses all tokens, for example for the creation of tokens. `enrolling` allows a
    session that owes its second factor.
    """

    need: Need
    grant: Grant | None = None
    basic: bool = False
    tokenless: bool = False
    enrolling: bool = False


_NEEDED = {
    Need.VIEWER: Rank.VIEWER,
    Need.EDITOR: Rank.EDITOR,
    Need.PROJECT_ADMIN: Rank.PROJECT_ADMIN,
    Need.ORG_ADMIN: Rank.ORG_ADMIN,
}
RANKS = {
    Role.VIEWER: Rank.VIEWER,
    Role.EDITOR: Rank.EDITOR,
    Role.PROJECT_ADMIN: Rank.PROJECT_ADMIN,
    Role.ORG_ADMIN: Rank.ORG_ADMIN,
}


def may(principal: Principal, action: Permission, scope: Scope | None = None) -> AccessDecision:
    """Returns whether the principal can perform the action in the scope.

    Without a scope (settings, search, own account), the result is never hidden, only refused. A
    role always needs a scope; a call without one is a programming error.
    """
    if action.need is Need.NOBODY:
        return AccessDecision.ALLOWED
    if scope is not None and not sees(principal, scope):
        return AccessDecision.HIDDEN
    fits = _credential_fits(principal, action) and _role_fits(principal, action.need, scope)
    return AccessDecision.ALLOWED if fits else AccessDecision.REFUSED


def sees(principal: Principal, scope: Scope) -> bool:
    """Returns whether the principal is a member. A member of a project sees its organization."""
    if principal.is_everywhere_org_admin:
        return True
    return any(
        member.organization == scope.organization
        and (scope.project is None or member.project in (None, scope.project))
        for member in principal.memberships
    )


def rank_in(principal: Principal, scope: Scope) -> Rank:
    """Returns the highest rank from the principal's memberships in the scope.

    On the organization itself every role except org_admin counts as viewer. A role in an
    organization applies to all its projects. An org_admin of a project is invalid; if found, it
    counts as project admin.
    """
    if principal.is_everywhere_org_admin:
        return Rank.ORG_ADMIN
    return max((_rank(member, scope) for member in principal.memberships), default=Rank.NONE)


def _rank(member: Membership, scope: Scope) -> Rank:
    if member.organization != scope.organization:
        return Rank.NONE
    rank = RANKS[member.role]
    if member.project is not None:
        rank = min(rank, Rank.PROJECT_ADMIN)
    if scope.project is None:
        return rank if rank is Rank.ORG_ADMIN else Rank.VIEWER
    return rank if member.project in (None, scope.project) else Rank.NONE


def _credential_fits(principal: Principal, action: Permission) -> bool:
    if (principal.kind is CredentialKind.AGENT) != (action.need is Need.AGENT):
        return False
    if principal.owes_second_factor and not action.enrolling:
        return False
    if not principal.via_token:
        return True
    if action.tokenless:
        return False
    narrowed = principal.actions is not None
    return not narrowed or action.basic or action.grant in (principal.actions or frozenset())


def _role_fits(principal: Principal, need: Need, scope: Scope | None) -> bool:
    if need in (Need.ANYONE, Need.AGENT):
        return True
    if need is Need.SESSION:
        return principal.kind is CredentialKind.SESSION
    if need is Need.GLOBAL_ADMIN:
        return principal.is_everywhere_org_admin
    if scope is None:
        raise ValueError(f"{need.name} is a role in a scope, and none was given")
    return rank_in(principal, scope) >= _NEEDED[need]


@dataclass(frozen=True, slots=True)
class Sight:
    """Visible objects of a list: everything, whole organizations, and single projects."""

    everything: bool
    organizations: frozenset[Key]
    projects: frozenset[Key]
    # Includes the organizations of single projects.
    visible_organizations: frozenset[Key]


def sight(principal: Principal) -> Sight:
    """Returns the filter of lists with several scopes, such as search and projects."""
    return Sight(
        everything=principal.is_everywhere_org_admin,
        organizations=frozenset(m.organization for m in principal.memberships if m.project is None),
        projects=frozenset(m.project for m in principal.memberships if m.project is not None),
        visible_organizations=frozenset(m.organization for m in principal.memberships),
    )


def may_see_secrets_of_a_monitor(principal: Principal, scope: Scope) -> bool:
    """Returns whether the principal can see scenarios, workflows and push tokens: editors can."""
    return may(principal, Permission(Need.EDITOR), scope) is AccessDecision.ALLOWED


def membership_fault(role: Role, project: Key | None) -> str | None:
    """Returns why a membership or token with this role is invalid, None if it is valid."""
    if role is Role.ORG_ADMIN and project is not None:
        return "project_id: must be omitted for org_admin, whose scope is the organization"
    return None


def actions_fault(actions: list[str] | None, role: Role) -> str | None:
    """Returns the refusal code of a token's action list, None if it is valid."""
    if actions is None:
        return None
    known = {grant.value for grant in Grant}
    if not actions or any(action not in known for action in actions):
        return "action_unknown"
    if Grant.CHANGE_RECORD in actions and RANKS[role] < Rank.EDITOR:
        return "action_not_granted"
    return None
