"""Roles by groups at a sign-in: memberships follow the claims of the identity provider.

Each change has a row in the audit log of its organization, and so has each membership that stays
although its group is gone. A claim that states no groups has a row in the log of the installation.
"""

from collections.abc import Mapping
from typing import Any

from uuid_utils.compat import uuid7

from ...engine.pools import Tx
from ..queries.group_roles import select_organization_uids, select_rules_of
from ..queries.person_uses import is_person_on_call
from ..rows import INSTANCE, MembershipRow, UserRow
from ..rules.access import Principal, Role
from ..rules.group_roles import GroupChange, HeldRole, UnreadClaim, claim_values, group_changes
from ..tables import users
from ..tables.tenant_deletion import lock_shared_organization
from .authorize import audit


async def apply_group_roles(
    tx: Tx, principal: Principal, user: UserRow, issuer: str, claims: Mapping[str, Any]
) -> None:
    """Changes the memberships of a person as the rules of the issuer require.

    Invariants: an organization with an org_admin keeps one. A person on call keeps the role viewer.
    """
    rules = await select_rules_of(tx, issuer)
    if not rules and all(
        one.group_issuer != issuer for one in await users.select_memberships(tx, user.id)
    ):
        return
    values = {rule.claim: claim_values(claims, rule.claim) for rule in rules}
    # Concurrent sign-ins of one person wait here, and see the memberships of each other.
    await users.lock_user(tx, user.id)
    held = await users.select_memberships(tx, user.id)
    states = [HeldRole(one.org, one.project, one.role, one.group_issuer) for one in held]
    for claim, value in sorted(values.items()):
        if isinstance(value, UnreadClaim):
            target = f"user:{user.uid} claim={claim} reason={value}"
            await audit(tx, principal, INSTANCE, "user.groups_unread", target)
    changes = group_changes(rules, values, states, issuer)
    organizations = await select_organization_uids(tx, sorted({one.org for one in changes}))
    present = {key for key, uid in organizations if await lock_shared_organization(tx, uid)}
    # As in the removal of a member: locked before the memberships, for all organizations.
    admins = {key: await users.lock_org_admins(tx, key) for key in sorted(present)}
    places = {(one.org, one.project): one for one in held}
    for change in changes:
        if change.org not in present:
            continue
        before = places.get((change.org, change.project))
        if before is None:
            await _add(tx, principal, user, change, issuer)
        else:
            await _change(tx, principal, change, before, issuer, admins[change.org])


async def _add(
    tx: Tx, principal: Principal, user: UserRow, change: GroupChange, issuer: str
) -> None:
    assert change.after is not None, "no membership is removed that does not exist"
    uid = uuid7()
    key = await users.insert_membership(
        tx, change.org, uid, user.id, change.project, change.after, group_issuer=issuer
    )
    if key is not None:
        target = f"membership:{uid} user:{user.uid} role={change.after}{_group(change)}"
        await audit(tx, principal, change.org, "member.create", target)


async def _change(
    tx: Tx,
    principal: Principal,
    change: GroupChange,
    before: MembershipRow,
    issuer: str,
    admins: list[int],
) -> None:
    row = await users.lock_membership(tx, change.org, before.uid)
    if row is None or (row.role, row.group_issuer) != (before.role, issuer):
        # A person changed it meanwhile.
        return
    about = f"membership:{row.uid} user:{row.user_uid} role={row.role}"
    if row.role == Role.ORG_ADMIN and admins == [row.id]:
        await audit(tx, principal, row.org, "member.keep", f"{about} reason=last_org_admin")
        return
    after = change.after
    if after is None and await is_person_on_call(tx, row.user_id, row.org, row.id):
        if row.role == Role.VIEWER:
            return
        after = Role.VIEWER
        about += " reason=on_call"
    if after is None:
        await users.delete_membership(tx, row)
        await audit(tx, principal, row.org, "member.delete", f"{about} group issuer={issuer}")
    else:
        await users.set_role(tx, row.org, row.id, after)
        target = about.replace(f"role={row.role}", f"role={row.role}->{after}")
        await audit(tx, principal, row.org, "member.update", target + _group(change))
    if row.id in admins:
        admins.remove(row.id)


def _group(change: GroupChange) -> str:
    return "" if change.rule is None else f" group {change.rule.claim}={change.rule.value}"
