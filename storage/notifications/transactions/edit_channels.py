"""Creation, edit and deletion of channels by editors of the project."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import audit, demand_project, demand_row, is_managed
from ...accounts.transactions.authorize_tenant_write import lock_project
from ...core.naming import name_fault
from ...core.refusal import Refused, expect
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ..queries import channel_uses
from ..queries import channels as channels_queries
from ..rows import ChannelRow
from ..tables import channels
from .channel_secrets import (
    checked,
    expect_secrets,
    merged,
    opened_for_edit,
    place_of,
    references_of,
    spec_of,
    split,
)

CHANNELS_OF_PROJECT_MOST: Final = 100
EDIT = Permission(Need.EDITOR)


@dataclass(frozen=True, slots=True)
class ChannelDraft:
    """Requested channel. A secret in `config` is its value, or the name of a project secret."""

    type: str
    name: str
    config: Mapping[str, str]
    enabled: bool = True
    takes_tickets: bool = False
    takes_warnings: bool = False


async def create_channel(
    tx: Tx,
    principal: Principal,
    project: UUID,
    kind: str,
    name: str,
    config: Mapping[str, str],
    keyring: Keyring,
    *,
    enabled: bool,
    takes_tickets: bool = False,
    takes_warnings: bool = False,
) -> ChannelRow:
    """Creates a channel.

    Raises: Refused not_found, forbidden, invalid, channel_quota, encryption_key_missing.
    """
    home = await demand_project(tx, principal, EDIT, project)
    await lock_project(tx, home)
    if await channels.count_channels(tx, home.org, home.id) >= CHANNELS_OF_PROJECT_MOST:
        raise Refused("channel_quota")
    draft = ChannelDraft(
        kind,
        name,
        config,
        enabled=enabled,
        takes_tickets=takes_tickets,
        takes_warnings=takes_warnings,
    )
    return await create_held_channel(tx, principal, home, uuid7(), draft, keyring)


async def create_held_channel(
    tx: Tx, principal: Principal, home: ProjectRow, uid: UUID, draft: ChannelDraft, keyring: Keyring
) -> ChannelRow:
    """Creates a channel in a locked project that has room for it.

    Raises: Refused invalid, encryption_key_missing.
    """
    kind, name = draft.type, draft.name
    expect("name", name_fault(name))
    spec = spec_of(kind)
    whole = checked(spec, draft.config)
    names = set(references_of(spec, whole).values())
    held = await channels.lock_shared_values(tx, home.org, home.id, names)
    expect_secrets(spec, whole, held, keyring)
    plain, sealed = split(spec, whole, keyring, place_of(uid))
    values = {"org": home.org, "uid": uid, "project": home.id, "type": kind, "name": name}
    values |= {
        "config": plain,
        "sealed": sealed,
        "enabled": draft.enabled,
        "takes_tickets": draft.takes_tickets,
        "takes_warnings": draft.takes_warnings,
    }
    await channels.insert_channel(tx, values)
    row = await _written(tx, uid)
    await audit(tx, principal, home.org, "channel.create", _target(row))
    return row


async def edit_channel(
    tx: Tx,
    principal: Principal,
    channel: UUID,
    name: str | None,
    config: Mapping[str, str] | None,
    enabled: bool | None,
    keyring: Keyring,
    takes_tickets: bool | None = None,
    takes_warnings: bool | None = None,
) -> ChannelRow:
    """Changes the fields that are not None. An edit without an effect is not written.

    Raises: Refused not_found, forbidden, invalid, encryption_key_missing, managed_by_file.
    """
    seen = demand_row(principal, EDIT, await channels_queries.select_channel(tx, channel))
    spec = spec_of(seen.type)
    names = set(references_of(spec, config or {}).values())
    # A new reference locks its secret before the channel.
    held = await channels.lock_shared_values(tx, seen.org, seen.project, names)
    before = await _lock(tx, principal, channel)
    _expect_unmanaged(principal, before)
    if name is not None:
        expect("name", name_fault(name))
    new_name = before.name if name is None else name
    is_enabled = before.enabled if enabled is None else enabled
    tickets = before.takes_tickets if takes_tickets is None else takes_tickets
    warnings = before.takes_warnings if takes_warnings is None else takes_warnings
    plain, sealed = before.config, before.config_ciphertext
    is_config_changed = False
    if config is not None:
        stored = opened_for_edit(before, spec, config, keyring)
        whole = merged(spec, stored, config)
        is_config_changed = whole != stored
        # The references that stay were checked when they were written.
        added = {k: v for k, v in whole.items() if k not in spec.references or config.get(k)}
        expect_secrets(spec, added, held, keyring)
        if is_config_changed:
            plain, sealed = split(spec, whole, keyring, place_of(before.uid))
    kept = (before.name, before.enabled, before.takes_tickets, before.takes_warnings)
    if not is_config_changed and (new_name, is_enabled, tickets, warnings) == kept:
        return before
    await channels.update_channel(
        tx,
        before,
        name=new_name,
        config=plain,
        sealed=sealed,
        enabled=is_enabled,
        takes_tickets=tickets,
        takes_warnings=warnings,
    )
    row = await _written(tx, channel)
    did = [" config changed"] if is_config_changed else []
    if row.enabled != before.enabled:
        did.append(f" enabled={before.enabled}->{row.enabled}".lower())
    if row.takes_tickets != before.takes_tickets:
        did.append(f" takes_tickets={before.takes_tickets}->{row.takes_tickets}".lower())
    if row.takes_warnings != before.takes_warnings:
        did.append(f" takes_warnings={before.takes_warnings}->{row.takes_warnings}".lower())
    await audit(tx, principal, row.org, "channel.update", _target(row) + "".join(did))
    return row


async def delete_channel(tx: Tx, principal: Principal, channel: UUID) -> None:
    """Deletes a channel with its monitor attachments and past overrides.

    Raises: Refused not_found, forbidden, managed_by_file, or in_use if an escalation policy or
        schedule uses it.
    """
    row = await _lock(tx, principal, channel, to_delete=True)
    _expect_unmanaged(principal, row)
    if await _is_counted_on(tx, row):
        raise Refused("in_use")
    await channels.delete_channel(tx, row)
    await audit(tx, principal, row.org, "channel.delete", _target(row))


async def _lock(
    tx: Tx, principal: Principal, channel: UUID, *, to_delete: bool = False
) -> ChannelRow:
    row = await channels.lock_channel(tx, channel, to_delete=to_delete)
    return demand_row(principal, EDIT, row)


def _expect_unmanaged(principal: Principal, row: ChannelRow) -> None:
    if is_managed(principal, row.managed_by, row.orphaned_at):
        raise Refused("managed_by_file")


async def _is_counted_on(tx: Tx, row: ChannelRow) -> bool:
    """Returns whether on-call uses the channel. New references wait for its lock."""
    return (
        await channel_uses.names_channel(tx, row.org, row.id)
        or await channel_uses.takes_part(tx, row.org, row.id)
        or await channel_uses.is_coming_for(tx, row.org, row.id)
    )


async def _written(tx: Tx, channel: UUID) -> ChannelRow:
    row = await channels_queries.select_channel(tx, channel)
    assert row is not None, "it was just written"
    return row


def _target(row: ChannelRow) -> str:
    return f"channel:{row.uid} project:{row.project_uid} type={row.type}"
