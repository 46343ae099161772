"""Secrets of projects: write-only. A secret in use cannot be renamed or deleted."""

from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand_project
from ...accounts.transactions.authorize_tenant_write import lock_project
from ...core.refusal import Refused, expect
from ...engine.keyring import CipherContext, Keyring
from ...engine.pools import Tx
from ..queries.secret_list import is_referred_to
from ..rules.secret import SECRETS_OF_PROJECT_MOST, secret_name_fault, secret_value_fault
from ..tables import secrets
from ..tables.secrets import SecretRow

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

    Raises:
        Refused not_found, forbidden, invalid, secret_exists, secret_renamed_in_use,
        encryption_key_missing.
    """
    home = await demand_project(tx, principal, EDIT, project)
    if new_name is None and value is None:
        raise Refused("invalid", "value", "or name is required")
    if new_name is not None:
        expect("name", secret_name_fault(new_name))
    if value is not None:
        expect("value", secret_value_fault(value))
    row = await _lock(tx, home, name)
    did = []
    if value is not None:
        await secrets.replace_value(tx, row, keyring.seal(value.encode(), place_of(row.uid)))
        did.append("value replaced")
    if new_name is not None and new_name != name:
        if await is_referred_to(tx, home.org, home.id, name):
            raise Refused("secret_renamed_in_use")
        if not await secrets.rename_secret(tx, row, new_name):
            raise Refused("secret_exists")
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


def _target(home: ProjectRow, uid: UUID, name: str) -> str:
    return f"secret:{uid} project:{home.uid} name={name}"
