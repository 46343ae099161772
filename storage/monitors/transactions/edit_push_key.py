"""Push key of a project, and the monitors that it creates.

A push to the URL of the key names a push monitor by its slug. If the project allows it, the first
push to an unknown slug creates the monitor. The holder of the key can therefore do a part of what
an editor can, and only editors see the key.
"""

import os
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import CredentialKind, Membership, Need, Permission, Principal, Role
from ...accounts.transactions.authorize import audit, demand_project
from ...core.refusal import Refused
from ...core.token import RANDOM_BYTES, TokenKind, digest, token_from
from ...engine.keyring import CannotOpen, CipherContext, Keyring
from ...engine.pools import Tx
from ..queries.push_keys import PushKeyHome, PushKeyRow
from ..rows import MonitorRow
from ..rules.monitor import MonitorDraft, MonitorType
from ..tables import monitors, push_keys
from .create_monitor import create_monitor

EDIT = Permission(Need.EDITOR)
# A project with more monitors gets no further one by a push.
MONITORS_MOST = 1_000
# A monitor that a push creates expects a report each day.
INTERVAL_SECONDS = 86_400
GRACE_SECONDS = 3_600


async def renew_push_key(
    tx: Tx, principal: Principal, project: UUID, keyring: Keyring, *, creates: bool
) -> str:
    """Returns a new key. The old one expires with the commit.

    Raises:
        Refused not_found, forbidden, encryption_key_missing.
    """
    home = await demand_project(tx, principal, EDIT, project)
    uid = uuid7()
    token = token_from(TokenKind.PUSH, os.urandom(RANDOM_BYTES))
    sealed = keyring.seal(token.encode(), _place(uid))
    await push_keys.put_push_key(tx, home.org, home.id, uid, digest(token), sealed, creates=creates)
    told = f"project:{project} push key renewed creates_monitors={creates}"
    await audit(tx, principal, home.org, "push_key.update", told)
    return token


async def allow_new_monitors(tx: Tx, principal: Principal, project: UUID, *, creates: bool) -> None:
    """Sets whether a push to an unknown slug creates a monitor.

    Raises:
        Refused not_found, forbidden.
    """
    home = await demand_project(tx, principal, EDIT, project)
    if not await push_keys.set_creates_monitors(tx, home.org, home.id, creates=creates):
        raise Refused("not_found")
    told = f"project:{project} push key creates_monitors={creates}"
    await audit(tx, principal, home.org, "push_key.update", told)


async def delete_push_key(tx: Tx, principal: Principal, project: UUID) -> None:
    """Deletes the key. Raises: Refused not_found, forbidden."""
    home = await demand_project(tx, principal, EDIT, project)
    if not await push_keys.delete_push_key(tx, home.org, home.id):
        raise Refused("not_found")
    await audit(tx, principal, home.org, "push_key.delete", f"project:{project} push key")


async def create_pushed_monitor(
    tx: Tx, home: PushKeyHome, slug: str, keyring: Keyring, regions: frozenset[str]
) -> MonitorRow:
    """Creates the push monitor of an unknown slug, as an editor named `push key`.

    Raises:
        Refused slug_taken, invalid if the project or organization has too many monitors.
    """
    if await monitors.count_monitors(tx, home.org, home.project) >= MONITORS_MOST:
        raise Refused("invalid", "project", f"has {MONITORS_MOST} monitors already")
    member = Membership(home.org, home.project, Role.EDITOR)
    who = Principal(CredentialKind.TOKEN, (member,), label="push key")
    draft = MonitorDraft(
        name=slug,
        slug=slug,
        type=MonitorType.PUSH,
        interval_seconds=INTERVAL_SECONDS,
        grace_seconds=GRACE_SECONDS,
    )
    return await create_monitor(tx, who, home.project_uid, draft, keyring, regions)


def open_push_key(row: PushKeyRow, keyring: Keyring) -> str | None:
    """Returns the key for editors, None if no key of the ring opens it."""
    try:
        return keyring.open(row.token_ciphertext, _place(row.uid)).decode()
    except CannotOpen:
        return None


def _place(uid: UUID) -> CipherContext:
    return CipherContext("push_keys", "token_ciphertext", uid)
