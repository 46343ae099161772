"""Who may do what: one function that every view and transaction asks before it answers.

Its three answers are the edges' 200, 404 and 403: whoever is no member learns nothing, not even
that the thing exists; a member whose role is too low learns that. Whether there is a principal at
all (401) is settled before.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from uuid import UUID

# Ids may be the database's numbers or the wire's UUIDs, as long as one comparison never mixes them.
Key = int | UUID


class Role(StrEnum):
    VIEWER = "viewer"
    EDITOR = "editor"
    PROJECT_ADMIN = "project_admin"
    ORG_ADMIN = "org_admin"


class Rank(IntEnum):
    """How far a role reaches, so that roles can be compared."""

    NONE = 0
    VIEWER = 1
    EDITOR = 2
    PROJECT_ADMIN = 3
    ORG_ADMIN = 4


class CredentialKind(StrEnum):
    """By what a principal proved itself."""

    SESSION = "session"
    TOKEN = "token"
    JWT = "jwt"
    AGENT = "agent"


class Grant(StrEnum):
    """What an API token's `actions` may name; such a list only narrows its role."""

    GATE_EVALUATE = "gate:evaluate"
    CHANGE_RECORD = "change:record"


class Need(StrEnum):
    """Who may call a route, in the letters of the route table."""

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
    """A role in an organization, or in one project of it."""

    organization: Key
    project: Key | None
    role: Role


@dataclass(frozen=True, slots=True)
class Scope:
    """What a request is about: a project of an organization, or the organization itself."""

    organization: Key
    project: Key | None = None


@dataclass(frozen=True, slots=True)
class Actor:
    """Who did something, as it is kept beside it: whoever they are by then."""

    label: str
    user: UUID | None
    via_token: bool


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. A token has exactly one membership, and `user` is then who made it or None.

    `actions` is None where the role alone decides. `owes_second_factor` is a session of an account
    for which TOTP is required and missing.
    """

    kind: CredentialKind
    memberships: tuple[Membership, ...] = ()
    user: Key | None = None
    is_global_admin: bool = False
    actions: frozenset[Grant] | None = None
    owes_second_factor: bool = False
    label: str = ""
    # What it is told apart by where it is counted: a person's id, or a token's own.
    uid: UUID | None = None
    # In whose name it writes what bundles manage; blank for whoever writes by hand.
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
        """Only a person signed in is ever a global admin: no token and no JWT is."""
        return self.is_global_admin and self.kind is CredentialKind.SESSION


@dataclass(frozen=True, slots=True)
class Permission:
    """What a route asks for beyond its need.

    `grant` opens it to tokens narrowed to that; `basic` is open to every token, however narrow
    (`/me`, `/version`); `tokenless` refuses tokens whatever their role, as making tokens does;
    `enrolling` stays open to a session that owes its second factor.
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
_RANKS = {
    Role.VIEWER: Rank.VIEWER,
    Role.EDITOR: Rank.EDITOR,
    Role.PROJECT_ADMIN: Rank.PROJECT_ADMIN,
    Role.ORG_ADMIN: Rank.ORG_ADMIN,
}


def may(principal: Principal, action: Permission, scope: Scope | None = None) -> AccessDecision:
    """Whether the principal may do this there.

    Without a scope (settings, search, one's own account) nothing can be hidden, only refused. A
    role that a route needs is always judged in a scope; asking for one without is a fault of ours.
    """
    if action.need is Need.NOBODY:
        return AccessDecision.ALLOWED
    if scope is not None and not sees(principal, scope):
        return AccessDecision.HIDDEN
    fits = _credential_fits(principal, action) and _role_fits(principal, action.need, scope)
    return AccessDecision.ALLOWED if fits else AccessDecision.REFUSED


def sees(principal: Principal, scope: Scope) -> bool:
    """Whether the principal is a member there at all; one of a project sees its organization."""
    if principal.is_everywhere_org_admin:
        return True
    return any(
        member.organization == scope.organization
        and (scope.project is None or member.project in (None, scope.project))
        for member in principal.memberships
    )


def rank_in(principal: Principal, scope: Scope) -> Rank:
    """The highest of what the principal's memberships give it there.

    On the organization itself only its org_admin is more than a viewer. An organization's role
    holds in all its projects; an org_admin of a single project cannot be, and counts as admin of
    that project if one is found.
    """
    if principal.is_everywhere_org_admin:
        return Rank.ORG_ADMIN
    return max((_rank(member, scope) for member in principal.memberships), default=Rank.NONE)


def _rank(member: Membership, scope: Scope) -> Rank:
    if member.organization != scope.organization:
        return Rank.NONE
    rank = _RANKS[member.role]
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
    """What a list may show: everything, whole organizations, and single projects."""

    everything: bool
    organizations: frozenset[Key]
    projects: frozenset[Key]
    # Those of the single projects too: whoever is in a project sees its organization.
    visible_organizations: frozenset[Key]


def sight(principal: Principal) -> Sight:
    """The filter for lists that no single scope names: search, events, organizations, projects."""
    return Sight(
        everything=principal.is_everywhere_org_admin,
        organizations=frozenset(m.organization for m in principal.memberships if m.project is None),
        projects=frozenset(m.project for m in principal.memberships if m.project is not None),
        visible_organizations=frozenset(m.organization for m in principal.memberships),
    )


def may_see_secrets_of_a_monitor(principal: Principal, scope: Scope) -> bool:
    """Scenarios, workflows, push tokens: for those who could write them, and for no viewer."""
    return may(principal, Permission(Need.EDITOR), scope) is AccessDecision.ALLOWED


def membership_fault(role: Role, project: Key | None) -> str | None:
    """Why a membership or a token of this kind cannot be; None where it can."""
    if role is Role.ORG_ADMIN and project is not None:
        return "project_id: an org_admin is one of the whole organization"
    return None


def actions_fault(actions: list[str] | None, role: Role) -> str | None:
    """The code with which a token's action list is refused; None where it is good."""
    if actions is None:
        return None
    known = {grant.value for grant in Grant}
    if not actions or any(action not in known for action in actions):
        return "action_unknown"
    if Grant.CHANGE_RECORD in actions and _RANKS[role] < Rank.EDITOR:
        return "action_not_granted"
    return None
