"""Creation, edit, move and deletion of components, under the lock of their page."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries import status_page_components
from ..rows import ComponentRow, PageRow
from ..rules.component_latency import PLOTS_MOST, measures_latency
from ..rules.status_page import COMPONENTS_MOST, ComponentSource
from ..rules.status_page_edit import (
    BindingTarget,
    ComponentDraft,
    ComponentEdit,
    component_faults,
    moved_positions,
    next_position,
    target_of_new,
)
from ..tables import status_page_components as status_components
from ..tables import status_pages
from .edit_pages import expect_unmanaged_page, find_page, lock_page
from .lock_bindings import lock_bindings


async def create_component(
    tx: Tx, principal: Principal, page: UUID, draft: ComponentDraft
) -> ComponentRow:
    """Creates a component. If no source is named, it is manual and operational.

    Raises:
        Refused not_found, forbidden, invalid, binding not found, component_quota, managed_by_file.
    """
    found = await find_page(tx, principal, page)
    for field, fault in component_faults(draft):
        raise Refused("invalid", field, fault)
    target = target_of_new(draft.target)
    if not isinstance(target, BindingTarget):
        raise Refused("invalid", *target)
    bound = await lock_bindings(tx, found, target)
    home = await lock_page(tx, found)
    await expect_unmanaged_page(tx, principal, home)
    others = await status_page_components.select_components_of(tx, home.org, home.id)
    if len(others) >= COMPONENTS_MOST:
        raise Refused("component_quota")
    if draft.show_latency:
        _expect_room(others)
    position = draft.position
    if position is None:
        position = next_position([other.position for other in others])
    uid = uuid7()
    await status_components.insert_component(
        tx,
        home.org,
        home.id,
        uid,
        bound,
        name=draft.name,
        description=draft.description,
        group=draft.group,
        position=position,
        show_latency=draft.show_latency,
    )
    await status_pages.raise_generation(tx, home)
    row = await written(tx, uid)
    if draft.show_latency:
        _expect_latency(row)
    await audit(tx, principal, row.org, "status_component.create", component_target(row))
    return row


async def update_component(
    tx: Tx, principal: Principal, component: UUID, edit: ComponentEdit
) -> ComponentRow:
    """Edits a component. An edit without changes is not written.

    Raises:
        Refused not_found, forbidden, invalid, managed_by_file.
    """
    home, before = await lock_component(tx, principal, component)
    for field, fault in component_faults(edit):
        raise Refused("invalid", field, fault)
    if edit.manual_status is not None and before.source != ComponentSource.MANUAL:
        raise Refused("invalid", "manual_status", "is for a component that is set by hand")
    values = _after(before, edit)
    if any(values[name] != getattr(before, name) for name in values if name != "manual_status"):
        # People also set the status of components that a bundle manages.
        await expect_unmanaged_page(tx, principal, home)
    if values["show_latency"] and not before.show_latency:
        _expect_latency(before)
        _expect_room(await status_page_components.select_components_of(tx, home.org, home.id))
    if all(value == getattr(before, name) for name, value in values.items()):
        return before
    await status_components.update_component(tx, before, **values)
    await status_pages.raise_generation(tx, home)
    target = component_target(before)
    if values["manual_status"] != before.manual_status:
        target += f" status={before.manual_status}->{values['manual_status']}"
    if values["show_latency"] != before.show_latency:
        target += f" latency={'shown' if values['show_latency'] else 'hidden'}"
    await audit(tx, principal, before.org, "status_component.update", target)
    return await written(tx, component)


def _after(before: ComponentRow, edit: ComponentEdit) -> dict[str, Any]:
    names = ("name", "description", "group", "position", "manual_status", "show_latency")
    given = {name: getattr(edit, name) for name in names}
    return {
        name: getattr(before, name) if value is None else value for name, value in given.items()
    }


def _expect_latency(row: ComponentRow) -> None:
    """Raises Refused invalid, if the component has no monitor that measures latency."""
    if not measures_latency(row.monitor_type):
        said = "is for a component of a monitor that measures latency"
        raise Refused("invalid", "show_latency", said)


def _expect_room(others: Sequence[ComponentRow]) -> None:
    """Raises Refused invalid, if the page has the most plots. The page is locked."""
    if sum(one.show_latency for one in others) >= PLOTS_MOST:
        raise Refused(
            "invalid", "show_latency", f"is for at most {PLOTS_MOST} components of a page"
        )


async def move_component(tx: Tx, principal: Principal, component: UUID, by: int) -> None:
    """Moves a component by `by` places, towards the front if negative, limited to the page.

    Raises:
        Refused not_found, forbidden, managed_by_file.
    """
    home, row = await lock_component(tx, principal, component)
    await expect_unmanaged_page(tx, principal, home)
    rows = await status_page_components.select_components_of(tx, home.org, home.id)
    before = [one.position for one in rows]
    at = next(n for n, one in enumerate(rows) if one.id == row.id)
    after = moved_positions(before, at, by)
    if after == before:
        return
    for one, position in zip(rows, after, strict=True):
        if position != one.position:
            values = _after(one, ComponentEdit(position=position))
            await status_components.update_component(tx, one, **values)
    await status_pages.raise_generation(tx, home)
    await audit(tx, principal, row.org, "status_component.update", component_target(row))


async def delete_component(tx: Tx, principal: Principal, component: UUID) -> None:
    """Deletes a component.

    Raises:
        Refused not_found, forbidden, managed_by_file.
    """
    home, row = await lock_component(tx, principal, component)
    # No bundle states a component whose source was deleted.
    if not row.is_lost:
        await expect_unmanaged_page(tx, principal, home)
    await status_components.delete_component(tx, row)
    await status_pages.raise_generation(tx, home)
    await audit(tx, principal, row.org, "status_component.delete", component_target(row))


async def lock_component(
    tx: Tx, principal: Principal, component: UUID
) -> tuple[PageRow, ComponentRow]:
    """Locks the page and returns it with the component as read under the lock.

    Raises:
        Refused not_found, forbidden.
    """
    found = await find_component(tx, component)
    page = await lock_page(tx, await find_page(tx, principal, found.page_uid))
    return page, await find_component(tx, component)


async def find_component(tx: Tx, component: UUID) -> ComponentRow:
    row = await status_page_components.select_component(tx, component)
    if row is None:
        raise Refused(NOT_FOUND)
    return row


async def written(tx: Tx, component: UUID) -> ComponentRow:
    row = await status_page_components.select_component(tx, component)
    assert row is not None, "its page is locked"
    return row


def component_target(row: ComponentRow) -> str:
    """Returns the audit name of a component."""
    return f"status_component:{row.uid} status_page:{row.page_uid}"
