"""Secrets of projects: write-only.

A rename changes the references of monitors too. A secret in use cannot be deleted.
"""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import (
    NOT_FOUND,
    audit,
    audit_many,
    demand_project,
    is_managed,
)
from ...accounts.transactions.authorize_tenant_write import lock_project
from ...core.refusal import Refused, expect
from ...engine.keyring import CipherContext, Keyring
from ...engine.pools import Conflicted, Tx
from ..queries.secret_list import is_referred_to, select_managed_destination, select_referring
from ..rows import MonitorRow
from ..rules.secret import SECRETS_OF_PROJECT_MOST, secret_name_fault, secret_value_fault
from ..tables import monitors, secrets
from ..tables.secrets import SecretRow
from .monitor_audit import target_of
from .rename_references import renamed_config

EDIT = Permission(Need.EDITOR)


def place_of(secret: UUID) -> CipherContext:
    return CipherContext("project_secrets", "value_ciphertext", secret)


async def create_secret(
    tx: Tx, principal: Principal, project: UUID, name: str, value: str, keyring: Keyring
) -> SecretRow:
    """Creates a secret.

    Raises:
        Refused not_found, forbidden, invalid, secret_exists, secret_quota, encryption_key_missing.
    """
    home = await demand_project(tx, principal, EDIT, project)
    expect("name", secret_name_fault(name))
    expect("value", secret_value_fault(value))
    await lock_project(tx, home)
    if await secrets.select_secret(tx, home.org, home.id, name) is not None:
        raise Refused("secret_exists")
    if await secrets.count_secrets(tx, home.org, home.id) >= SECRETS_OF_PROJECT_MOST:
        raise Refused("secret_quota")
    uid = uuid7()
    sealed = keyring.seal(value.encode(), place_of(uid))
    await secrets.insert_secret(tx, home.org, home.id, uid, name, sealed)
    await audit(tx, principal, home.org, "secret.create", _target(home, uid, name))
    row = await secrets.select_secret(tx, home.org, home.id, name)
    assert row is not None, "it was just written"
    return row


async def edit_secret(
    tx: Tx,
    principal: Principal,
    project: UUID,
    name: str,
    new_name: str | None,
    value: str | None,
    keyring: Keyring,
) -> None:
    """Replaces the value of a secret, renames it, or both.

    The settings and workflows of monitors that refer to a renamed secret change in the same
    transaction.

    Raises:
        Refused not_found, forbidden, invalid, secret_exists, encryption_key_missing, and
        managed_by_file with the monitor, if a bundle or a file provider manages a monitor that
        refers to a renamed secret. Conflicted if a monitor came to refer to it meanwhile.
    """
    home = await demand_project(tx, principal, EDIT, project)
    if new_name is None and value is None:
        raise Refused("invalid", "value", "or name is required")
    if new_name is not None:
        expect("name", secret_name_fault(new_name))
    if value is not None:
        expect("value", secret_value_fault(value))
    is_renamed = new_name is not None and new_name != name
    # An edit of a monitor locks the monitor before the secret.
    referring = await _lock_referring(tx, home, name) if is_renamed else []
    row = await _lock(tx, home, name)
    did = []
    if value is not None:
        await secrets.replace_value(tx, row, keyring.seal(value.encode(), place_of(row.uid)))
        did.append("value replaced")
    if new_name is not None and is_renamed:
        _expect_unmanaged(principal, referring)
        managed = await select_managed_destination(tx, home.org, home.id, name)
        if managed is not None:
            raise Refused("managed_by_file", managed[0], f"managed by {managed[1]}")
        if not await secrets.rename_secret(tx, row, new_name):
            raise Refused("secret_exists")
        await _rename_references(tx, principal, home, referring, (name, new_name), keyring)
        await secrets.rename_in_channels(tx, row, new_name)
        did.append(f"name={name}->{new_name}")
    if did:
        target = f"{_target(home, row.uid, name)} {' '.join(did)}"
        await audit(tx, principal, home.org, "secret.update", target)


async def delete_secret(tx: Tx, principal: Principal, project: UUID, name: str) -> None:
    """Deletes a secret.

    Raises:
        Refused not_found, forbidden, secret_in_use.
    """
    home = await demand_project(tx, principal, EDIT, project)
    row = await _lock(tx, home, name)
    if await is_referred_to(tx, home.org, home.id, name):
        raise Refused("secret_in_use")
    await secrets.delete_secret(tx, row)
    await audit(tx, principal, home.org, "secret.delete", _target(home, row.uid, name))


async def _lock(tx: Tx, home: ProjectRow, name: str) -> SecretRow:
    row = await secrets.lock_secret(tx, home.org, home.id, name)
    if row is None:
        raise Refused(NOT_FOUND)
    return row


async def _lock_referring(tx: Tx, home: ProjectRow, name: str) -> list[MonitorRow]:
    """Locks the monitors that refer to a secret, and returns them in the order of their names."""
    keys = await select_referring(tx, home.org, home.id, name)
    await monitors.lock_monitors_of(tx, home.org, [key[1] for key in keys])
    rows = await monitors.select_monitors_by_key(tx, keys)
    return sorted(rows.values(), key=lambda row: (row.name, row.id))


def _expect_unmanaged(principal: Principal, referring: list[MonitorRow]) -> None:
    """Refuses if files manage a monitor, since they would name the former secret again."""
    for row in referring:
        if is_managed(principal, row.managed_by, row.orphaned_at):
            message = f"managed by {row.managed_by}"
            raise Refused("managed_by_file", f"monitor {row.name}", message)


async def _rename_references(
    tx: Tx,
    principal: Principal,
    home: ProjectRow,
    referring: list[MonitorRow],
    names: tuple[str, str],
    keyring: Keyring,
) -> None:
    """Writes the new name of a locked secret into the locked monitors that refer to it.

    `names` are the former and the new name.
    """
    found = await select_referring(tx, home.org, home.id, names[0])
    if not {row.key for row in referring}.issuperset(found):
        raise Conflicted("a monitor came to refer to the secret before its lock")
    configs = [renamed_config(row, *names, keyring) for row in referring]
    await monitors.set_configs(tx, home.org, [row.id for row in referring], configs)
    said = f"config secret {names[0]}->{names[1]}"
    audited = [(row.org, "monitor.update", f"{target_of(row)} {said}") for row in referring]
    await audit_many(tx, principal, audited)


def _target(home: ProjectRow, uid: UUID, name: str) -> str:
    return f"secret:{uid} project:{home.uid} name={name}"
