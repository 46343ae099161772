"""Roles by groups: compared with a model that is written from the rules in the documentation."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.accounts.rules.access import Role
from leadline.storage.accounts.rules.group_roles import (
    VALUES_MOST,
    GroupRule,
    HeldRole,
    UnreadClaim,
    claim_values,
    group_changes,
)

pytestmark = pytest.mark.rule
HERE, THERE = "https://here.test", "https://there.test"
LADDER = ["viewer", "editor", "project_admin", "org_admin"]
PLACES = [(1, None), (1, 7), (2, None), (2, 8)]

places = st.sampled_from(PLACES)
groups = st.sampled_from(["a", "b", "c"])
roles = st.sampled_from(LADDER)
rules = st.lists(
    st.builds(
        lambda claim, value, place, role: GroupRule(claim, value, place[0], place[1], role),
        st.sampled_from(["groups", "roles"]),
        groups,
        places,
        roles,
    ),
    max_size=8,
)
held = st.lists(
    st.builds(
        lambda place, role, issuer: HeldRole(place[0], place[1], role, issuer),
        places,
        roles,
        st.sampled_from([None, HERE, THERE]),
    ),
    max_size=4,
    unique_by=lambda one: (one.org, one.project),
)
claims = st.one_of(st.frozensets(groups), st.sampled_from(list(UnreadClaim)))


def modelled(
    given_rules: list[GroupRule], values: dict[str, Any], memberships: list[HeldRole]
) -> dict[tuple[int, int | None], str]:
    """The memberships after the sign-in, place by place."""
    after = {}
    for place in PLACES:
        mine = [one for one in memberships if (one.org, one.project) == place]
        before = mine[0].role if mine else ""
        here = [rule for rule in given_rules if (rule.org, rule.project) == place]
        is_unread = any(isinstance(values[rule.claim], UnreadClaim) for rule in here)
        if is_unread or (mine and mine[0].issuer != HERE):
            role = before
        else:
            granted = [rule.role for rule in here if rule.value in values[rule.claim]]
            role = max(granted, key=LADDER.index, default="")
        if role:
            after[place] = role
    return after


@given(rules, claims, claims, held)
def test_the_changes_lead_to_the_memberships_of_the_model(
    given_rules: list[GroupRule], first: Any, second: Any, memberships: list[HeldRole]
) -> None:
    values = {"groups": first, "roles": second}
    after = {(one.org, one.project): one.role for one in memberships}
    for change in group_changes(given_rules, values, memberships, HERE):
        place = (change.org, change.project)
        assert after.get(place) == change.before
        if change.after is None:
            del after[place]
        else:
            after[place] = change.after.value
            assert change.rule is not None
            assert Role(change.rule.role) is change.after
    assert after == modelled(given_rules, values, memberships)
    issuers = {(one.org, one.project): one.issuer for one in memberships}
    settled = [HeldRole(*place, role, issuers.get(place, HERE)) for place, role in after.items()]
    assert group_changes(given_rules, values, settled, HERE) == []


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({}, UnreadClaim.ABSENT),
        ({"groups": ["a", "b", "a"]}, frozenset({"a", "b"})),
        ({"groups": "a"}, frozenset({"a"})),
        ({"groups": []}, frozenset()),
        ({"groups": None}, UnreadClaim.INVALID),
        ({"groups": ["a", 1]}, UnreadClaim.INVALID),
        ({"groups": {"a": True}}, UnreadClaim.INVALID),
        ({"groups": [str(n) for n in range(VALUES_MOST + 1)]}, UnreadClaim.TOO_LARGE),
        # The reference that Entra ID sends for a person in more than 200 groups.
        ({"_claim_names": {"groups": "src1"}}, UnreadClaim.TOO_LARGE),
        ({"_claim_names": {"other": "src1"}}, UnreadClaim.ABSENT),
    ],
)
def test_a_claim_has_groups_or_a_reason(sent: dict[str, Any], read: Any) -> None:
    assert claim_values(sent, "groups") == read
