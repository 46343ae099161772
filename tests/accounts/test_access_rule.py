"""The access rules: every combination of principal, action and scope, compared with an independent
model."""

import itertools
from collections.abc import Iterator

import pytest

from leadline.storage.accounts.rules.access import (
    AccessDecision,
    CredentialKind,
    Grant,
    Membership,
    Need,
    Permission,
    Principal,
    Role,
    Scope,
    Sight,
    actions_fault,
    may,
    may_see_secrets_of_a_monitor,
    membership_fault,
    sight,
)

ORG, OTHER_ORG = 1, 2
PROJECT, OTHER_PROJECT = 10, 11
LADDER = ["viewer", "editor", "project_admin", "org_admin"]
LETTERS = {"V": "viewer", "E": "editor", "A": "project_admin", "O": "org_admin"}
SCOPES: list[Scope | None] = [None, Scope(ORG), Scope(ORG, PROJECT), Scope(OTHER_ORG)]


def all_memberships() -> list[tuple[Membership, ...]]:
    single = [
        Membership(org, project, role)
        for org, project in ((ORG, None), (ORG, PROJECT), (ORG, OTHER_PROJECT), (OTHER_ORG, None))
        for role in Role
        if not (project and role is Role.ORG_ADMIN)
    ]
    return [(), *((m,) for m in single), *itertools.combinations(single, 2)]


def all_principals() -> Iterator[Principal]:
    narrowings = [None, *(frozenset({grant}) for grant in Grant), frozenset(Grant)]
    for memberships in all_memberships():
        for admin, owes in itertools.product((False, True), repeat=2):
            yield Principal(
                CredentialKind.SESSION, memberships, is_global_admin=admin, owes_second_factor=owes
            )
        yield Principal(CredentialKind.JWT, memberships)
        yield Principal(CredentialKind.JWT, memberships, is_global_admin=True)
        if len(memberships) == 1:
            for actions in narrowings:
                yield Principal(CredentialKind.TOKEN, memberships, actions=actions)
    yield Principal(CredentialKind.AGENT)


def all_actions() -> list[Permission]:
    extras: list[dict[str, object]] = [
        {},
        {"grant": Grant.GATE_EVALUATE},
        {"grant": Grant.CHANGE_RECORD},
        {"basic": True, "enrolling": True},
        {"basic": True},
        {"tokenless": True},
        {"enrolling": True},
    ]
    return [Permission(need, **extra) for need in Need for extra in extras]  # type: ignore[arg-type]


def member_roles(principal: Principal, scope: Scope) -> list[str]:
    """The role that each membership gives in the scope, by the sentences of the text."""
    roles = []
    for member in principal.memberships:
        if member.organization != scope.organization:
            continue
        if scope.project is None:
            # One in a project sees its organization; a project_admin has no rights on it.
            roles.append("org_admin" if member.role == "org_admin" else "viewer")
        elif member.project is None or member.project == scope.project:
            roles.append(str(member.role))
    return roles


def stated(principal: Principal, action: Permission, scope: Scope | None) -> str:
    need = action.need.value
    if need == "-":
        return "allowed"
    god = principal.kind == "session" and principal.is_global_admin
    roles = member_roles(principal, scope) if scope else []
    if god and scope:
        roles.append("org_admin")
    if scope and not roles:
        return "hidden"
    if (principal.kind == "agent") != (need == "T"):
        return "refused"
    if principal.owes_second_factor and not action.enrolling:
        return "refused"
    if principal.kind == "token" and action.tokenless:
        return "refused"
    if principal.actions is not None and not action.basic and action.grant is None:
        return "refused"
    if principal.actions is not None and not action.basic and action.grant not in principal.actions:
        return "refused"
    if need == "G":
        return "allowed" if god else "refused"
    if need == "S":
        return "allowed" if principal.kind == "session" else "refused"
    if need in LETTERS:
        least = LADDER.index(LETTERS[need])
        enough = any(LADDER.index(role) >= least for role in roles)
        return "allowed" if enough else "refused"
    return "allowed"


@pytest.mark.parametrize("action", all_actions(), ids=str)
def test_every_principal_gets_the_answer_that_the_text_gives(action: Permission) -> None:
    for principal in all_principals():
        for scope in SCOPES:
            if scope is None and action.need.value in LETTERS:
                continue
            assert may(principal, action, scope).value == stated(principal, action, scope), (
                principal,
                scope,
            )


def test_a_role_is_never_judged_without_a_scope() -> None:
    with pytest.raises(ValueError, match="scope"):
        may(Principal(CredentialKind.JWT), Permission(Need.VIEWER))


def test_principals_of_another_organization_or_project_see_no_data() -> None:
    stranger = Principal(CredentialKind.SESSION, (Membership(OTHER_ORG, None, Role.ORG_ADMIN),))
    neighbour = Principal(
        CredentialKind.SESSION, (Membership(ORG, OTHER_PROJECT, Role.PROJECT_ADMIN),)
    )
    for need in (Need.VIEWER, Need.ORG_ADMIN, Need.GLOBAL_ADMIN):
        assert may(stranger, Permission(need), Scope(ORG, PROJECT)) is AccessDecision.HIDDEN
        assert may(neighbour, Permission(need), Scope(ORG, PROJECT)) is AccessDecision.HIDDEN
    assert may(neighbour, Permission(Need.VIEWER), Scope(ORG)) is AccessDecision.ALLOWED
    assert may(neighbour, Permission(Need.ORG_ADMIN), Scope(ORG)) is AccessDecision.REFUSED


def test_lists_show_whole_organizations_single_projects_and_their_organizations() -> None:
    someone = Principal(
        CredentialKind.SESSION,
        (Membership(ORG, PROJECT, Role.VIEWER), Membership(OTHER_ORG, None, Role.VIEWER)),
    )
    assert sight(someone) == Sight(
        everything=False,
        organizations=frozenset({OTHER_ORG}),
        projects=frozenset({PROJECT}),
        visible_organizations=frozenset({ORG, OTHER_ORG}),
    )
    assert sight(Principal(CredentialKind.SESSION, is_global_admin=True)).everything
    assert not sight(Principal(CredentialKind.JWT, is_global_admin=True)).everything


def test_viewers_never_see_what_only_editors_write() -> None:
    for role in Role:
        principal = Principal(CredentialKind.SESSION, (Membership(ORG, None, role),))
        seen = may_see_secrets_of_a_monitor(principal, Scope(ORG, PROJECT))
        assert seen == (role is not Role.VIEWER)


def test_an_org_admin_of_one_project_cannot_be_made() -> None:
    assert membership_fault(Role.ORG_ADMIN, PROJECT) is not None
    assert membership_fault(Role.ORG_ADMIN, None) is None
    assert membership_fault(Role.PROJECT_ADMIN, PROJECT) is None


def test_an_action_list_names_known_actions_that_the_role_grants() -> None:
    assert actions_fault(None, Role.VIEWER) is None
    assert actions_fault([], Role.ORG_ADMIN) == "action_unknown"
    assert actions_fault(["gate:evaluate", "gate:edit"], Role.ORG_ADMIN) == "action_unknown"
    assert actions_fault(["change:record"], Role.VIEWER) == "action_not_granted"
    assert actions_fault(["gate:evaluate"], Role.VIEWER) is None
    assert actions_fault(["gate:evaluate", "change:record"], Role.EDITOR) is None
