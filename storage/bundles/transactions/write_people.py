"""Write of a bundle's people: invitations, and contact methods that a bundle proposes.

Invariants: no account and no membership is created, and no account is locked. Members get the
methods from `adopt_proposals` after the commit, as unverified ones; a plan reads neither accounts
nor contact methods, and reveals only memberships. A person without an entry in any bundle is
forgotten, and keeps the methods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...accounts.rules.access import AccessDecision, Role, Scope, may
from ...accounts.transactions.edit_invitations import invite
from ...accounts.transactions.edit_members import EDIT as INVITE
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries import select_bundle_people, select_invited, select_member_addresses
from ..rows import BundlePersonRow
from ..rules.bundle import Bundle
from ..rules.bundle_diff import BundleAction, BundleChange, change_of
from ..rules.bundle_owner import CONFLICT, expect_owned, left_out, marks_of, owner_change
from ..rules.bundle_people import PersonEntry, new_methods
from ..tables.bundle_ownership import put_marks
from ..tables.bundle_people import delete_people, put_person, select_pending
from .bundle_context import ApplySource, BundleContext, under
from .oncall_entries import brief

# `invite` is not in an entry: an address needs an invitation until it is a member.
PERSON_DEFAULTS: Final[Mapping[str, Any]] = {
    "name": "",
    "role": Role.EDITOR.value,
    "contact_methods": [],
    "invite": False,
}


@dataclass(slots=True)
class WantedPeople:
    """Compared people. `invited` are the uids whose address gets an invitation."""

    entries: Mapping[str, PersonEntry]
    standing: dict[str, BundlePersonRow]
    orphans: dict[str, BundlePersonRow]
    changes: list[BundleChange] = field(default_factory=list)
    invited: set[str] = field(default_factory=set)


async def compare_people(
    tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource
) -> WantedPeople:
    """Compares the people. Writes no rows.

    Raises:
        Refused invalid with the address if the principal may not invite it; bundle_conflict if
        another entry of the project has the address, or another bundle the entry.
    """
    home = place.home
    if not bundle.states("people"):
        return WantedPeople({}, {}, {})
    rows = await select_bundle_people(tx, home.org, home.id)
    members = await select_member_addresses(tx, home.org, home.id)
    waiting = await select_invited(tx, home.org, home.id) if bundle.people else set()
    inviter = applied.inviter or applied.principal
    can_invite = may(inviter, INVITE, Scope(home.org)) is AccessDecision.ALLOWED
    held = {row.bundle_uid: row for row in rows if row.managed_by == applied.provider}
    standing = {uid: held[uid] for uid in bundle.people if uid in held}
    orphans = left_out("person", rows, bundle.people, applied)
    found = WantedPeople(bundle.people, standing, orphans)
    others = _others(rows, found)
    for uid, entry in bundle.people.items():
        email, path = entry.email.lower(), f"people.{uid}"
        if email in others:
            rule = f"is the address of {others[email].bundle_uid}, which another bundle has"
            raise Refused(CONFLICT, f"{path}.email", rule)
        is_missing = email not in members
        if is_missing and email not in waiting:
            if not can_invite:
                rule = "is not a member of the project: an administrator of the organization"
                raise Refused("invalid", f"{path}.email", f"{rule} must invite this address")
            found.invited.add(uid)
        row = standing.get(uid)
        after = person_in_words(entry) | {"invite": is_missing}
        if row is None:
            settings = brief(after, PERSON_DEFAULTS)
            found.changes.append(change_of("person", uid, None, settings, None))
            continue
        before = row_in_words(row) | {"invite": is_missing and email in waiting}
        change = change_of("person", uid, before, after, owner_change(row, applied))
        expect_owned(path, row, applied, [one.name for one in change.fields])
        found.changes.append(change)
    found.changes += [
        BundleChange(kind="person", uid=uid, action=BundleAction.ORPHAN) for uid in orphans
    ]
    return found


def _others(rows: Sequence[BundlePersonRow], wanted: WantedPeople) -> dict[str, BundlePersonRow]:
    """Returns the people of other bundles and entries, by address in lower case."""
    ours = {row.id for row in (*wanted.standing.values(), *wanted.orphans.values())}
    return {row.email.lower(): row for row in rows if row.id not in ours}


def person_in_words(entry: PersonEntry) -> dict[str, Any]:
    return {
        "email": entry.email,
        "name": entry.name if isinstance(entry.name, str) else "",
        "role": entry.role,
        "contact_methods": [msgspec.structs.asdict(one) for one in entry.contact_methods],
    }


def row_in_words(row: BundlePersonRow) -> dict[str, Any]:
    return {
        "email": row.email,
        "name": row.name,
        "role": row.role,
        "contact_methods": msgspec.json.decode(row.methods, type=list[dict[str, Any]]),
    }


async def write_people(
    tx: Tx, place: BundleContext, wanted: WantedPeople, applied: ApplySource, *, is_plan: bool
) -> None:
    """Writes the people and their proposals, and invites addresses.

    A plan only reports progress. The comparison raises the refusals of the write.

    Raises:
        Refused with the entry.
    """
    home = place.home
    acts = {one.uid: one.action for one in wanted.changes if one.action is not _SAME}
    ids = {uid: row.uid for uid, row in wanted.standing.items()}
    ids.update({uid: uuid7() for uid in wanted.entries if uid not in ids})
    if not is_plan:
        await delete_people(tx, home.org, [row.uid for row in wanted.orphans.values()])
    for uid, action in acts.items():
        if not is_plan and uid in wanted.entries:
            await _put(tx, place, ids[uid], wanted.entries[uid], wanted.standing.get(uid))
        if not is_plan and uid in wanted.invited:
            await _invite(tx, place, uid, wanted.entries[uid], applied)
        applied.progress.wrote(action, "person", uid)
    if is_plan or not wanted.entries:
        return
    await put_marks(tx, "person", home.org, marks_of(ids, wanted.standing, {}, applied, tx.now))


_SAME: Final = BundleAction.UNCHANGED


async def _put(
    tx: Tx, place: BundleContext, uid: UUID, entry: PersonEntry, row: BundlePersonRow | None
) -> None:
    settings = person_in_words(entry)
    methods = settings.pop("contact_methods")
    pending: Sequence[Mapping[str, Any]] = methods
    if row is not None and row.email.lower() == entry.email.lower():
        before = row_in_words(row)["contact_methods"]
        due = await select_pending(tx, uid)
        pending = new_methods(methods, [one for one in before if one not in due])
    await put_person(tx, place.home.key, uid, settings, methods, pending)


async def _invite(
    tx: Tx, place: BundleContext, uid: str, entry: PersonEntry, applied: ApplySource
) -> None:
    home = place.home
    with under(f"people.{uid}"):
        await invite(
            tx,
            applied.principal,
            home.org_uid,
            entry.email,
            home.uid,
            Role(entry.role),
            None,
            entry.name if isinstance(entry.name, str) else "",
        )
