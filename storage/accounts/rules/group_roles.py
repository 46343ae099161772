"""Roles by groups of the identity provider: which memberships a sign-in changes.

A rule gives each person whose claim contains a value a role in an organization or a project. The
rules do not change a membership that a person gave.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from .access import RANKS, Role

RULES_MOST: Final = 500
CLAIM_LONGEST: Final = 128
VALUE_LONGEST: Final = 256
# Values of a claim that are read. A provider with more sends a reference in their place.
VALUES_MOST: Final = 1_000

# Organization, and project or None for the whole organization.
RolePlace = tuple[int, int | None]


class UnreadClaim(StrEnum):
    """Reason for which a claim states no groups. Its rules then change no membership."""

    ABSENT = "absent"
    TOO_LARGE = "too_large"
    INVALID = "invalid"


class GroupRule(msgspec.Struct, frozen=True):
    claim: str
    value: str
    org: int
    project: int | None
    role: str


class HeldRole(msgspec.Struct, frozen=True):
    """Membership of a person. `issuer` is None if a person gave it."""

    org: int
    project: int | None
    role: str
    issuer: str | None


class GroupChange(msgspec.Struct, frozen=True):
    """Change of a membership: `before` None adds it, `after` None removes it.

    `rule` is the rule that gives the new role.
    """

    org: int
    project: int | None
    before: Role | None
    after: Role | None
    rule: GroupRule | None = None


def claim_values(claims: Mapping[str, Any], name: str) -> frozenset[str] | UnreadClaim:
    """Returns the groups of a claim, which is a text or a list of texts.

    A reference to the groups in their place (OpenID Connect Core 1.0, section 5.6.2) is too large.
    """
    if name not in claims:
        elsewhere = claims.get("_claim_names")
        if isinstance(elsewhere, dict) and name in elsewhere:
            return UnreadClaim.TOO_LARGE
        return UnreadClaim.ABSENT
    value = claims[name]
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        return UnreadClaim.INVALID
    return UnreadClaim.TOO_LARGE if len(found) > VALUES_MOST else frozenset(found)


def group_changes(
    rules: Sequence[GroupRule],
    values: Mapping[str, Collection[str] | UnreadClaim],
    held: Sequence[HeldRole],
    issuer: str,
) -> list[GroupChange]:
    """Returns the changes of memberships, in the order of their places.

    `rules` are those of the issuer, and `values` has each claim that they name. A place with a rule
    whose claim was not read keeps its membership, as the claim could contain the group.
    """
    unread = {
        (rule.org, rule.project) for rule in rules if isinstance(values[rule.claim], UnreadClaim)
    }
    wanted: dict[RolePlace, GroupRule] = {}
    for rule in rules:
        place = (rule.org, rule.project)
        groups = values[rule.claim]
        if isinstance(groups, UnreadClaim) or rule.value not in groups:
            continue
        if place not in wanted or RANKS[Role(wanted[place].role)] < RANKS[Role(rule.role)]:
            wanted[place] = rule
    own = {(one.org, one.project): Role(one.role) for one in held if one.issuer == issuer}
    others = {(one.org, one.project) for one in held if one.issuer != issuer}
    places = (wanted.keys() | own.keys()) - unread - others
    changes = []
    for org, project in sorted(places, key=lambda place: (place[0], place[1] or 0)):
        rule_of = wanted.get((org, project))
        before = own.get((org, project))
        after = None if rule_of is None else Role(rule_of.role)
        if before is not after:
            changes.append(GroupChange(org, project, before, after, rule_of))
    return changes


def rule_fault(claim: str, value: str) -> tuple[str, str] | None:
    """Returns the field and the rule that a new rule breaks, None if it is valid."""
    for field, text, longest in (("claim", claim, CLAIM_LONGEST), ("value", value, VALUE_LONGEST)):
        if not 1 <= len(text) <= longest:
            return field, f"must have 1 to {longest} characters"
        if not text.isprintable() or text != text.strip():
            return field, "must be printable, without spaces at its ends"
    return None
