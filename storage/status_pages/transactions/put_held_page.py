"""Write of a whole status page by a bundle: its settings and its components in order.

The status that people set of a manual component stays, and so does a custom domain. Components keep
their identity by source and name, since incidents refer to them. A component whose monitor or
service was deleted stays as it is, until people delete it or an entry gives its name a source.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.instant import is_timezone
from ...core.refusal import Refused
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ...monitors.tables import monitors
from ...services.tables.services import select_service_ids
from ..queries.component_latency import select_measures_latency
from ..queries.status_page_components import select_components_of
from ..rows import ComponentBinding, ComponentRow, PageRow
from ..rules.branding import PageBranding, page_branding_fault
from ..rules.component_latency import PLOTS_MOST
from ..rules.page_language import language_fault
from ..rules.status_page import COMPONENTS_MOST, ComponentSource, ComponentStatus, Visibility
from ..rules.status_page_edit import (
    PAGES_OF_ORGANIZATION_MOST,
    BindingTarget,
    ComponentDraft,
    PageDraft,
    component_faults,
    page_faults,
)
from ..tables import status_page_components as status_components
from ..tables import status_pages
from .edit_pages import lock_page, new_token, page_target, update_page, written
from .lock_bindings import BINDING_NOT_FOUND


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePage:
    """Page with its components in order. A component of no source is manual."""

    slug: str
    title: str
    visibility: Visibility
    time_zone: str
    language: str
    branding: PageBranding
    components: Sequence[ComponentDraft]


def whole_page_fault(page: WholePage) -> tuple[str, str] | None:
    """Returns the wrong field of a page and its rule. Sources are not checked."""
    draft = PageDraft(slug=page.slug, title=page.title, visibility=page.visibility)
    for field, fault in page_faults(draft):
        return field, fault
    wrong = page_branding_fault(page.branding)
    if wrong is not None:
        return f"branding.{wrong[0]}", wrong[1]
    if not is_timezone(page.time_zone):
        return "timezone", "must be the name of an IANA time zone"
    unknown = language_fault(page.language)
    if unknown is not None:
        return "language", unknown
    if len(page.components) > COMPONENTS_MOST:
        return "components", f"must have at most {COMPONENTS_MOST} entries"
    for at, one in enumerate(page.components):
        for field, fault in component_faults(one):
            return f"components[{at}].{field}", fault
    if sum(one.show_latency for one in page.components) > PLOTS_MOST:
        return "components", f"must have at most {PLOTS_MOST} with show_latency"
    return None


async def put_held_page(
    tx: Tx,
    principal: Principal,
    home: ProjectRow,
    uid: UUID,
    wanted: WholePage,
    keyring: Keyring,
) -> None:
    """Creates or replaces a page of a locked project, for a bundle that may edit it.

    Raises:
        Refused invalid with its field, binding not found, page_quota, slug_taken,
        encryption_key_missing.
    """
    wrong = whole_page_fault(wanted)
    if wrong is not None:
        raise Refused("invalid", *wrong)
    before = await status_pages.lock_status_page(tx, uid)
    if before is None:
        await _insert(tx, principal, home, uid, wanted, keyring)
    await update_page(
        tx,
        principal,
        uid,
        wanted.title,
        wanted.visibility,
        keyring,
        wanted.branding,
        wanted.time_zone,
        wanted.language,
    )
    page = await lock_page(tx, await written(tx, uid))
    await _put_components(tx, page, wanted.components)
    await status_pages.raise_generation(tx, page)


async def _insert(
    tx: Tx, principal: Principal, home: ProjectRow, uid: UUID, wanted: WholePage, keyring: Keyring
) -> None:
    await status_pages.lock_page_quota(tx, home.org)
    if await status_pages.count_status_pages(tx, home.org) >= PAGES_OF_ORGANIZATION_MOST:
        raise Refused("page_quota")
    token = new_token(uid, keyring) if wanted.visibility is Visibility.UNLISTED else None
    if not await status_pages.insert_status_page(
        tx, home.org, uid, home.id, wanted.slug, wanted.title, wanted.visibility, token
    ):
        raise Refused("slug_taken")
    row = await written(tx, uid)
    await audit(tx, principal, home.org, "status_page.create", page_target(row))


async def _put_components(tx: Tx, page: PageRow, wanted: Sequence[ComponentDraft]) -> None:
    stored = await select_components_of(tx, page.org, page.id)
    bound = [await _bound_of(tx, page, at, one) for at, one in enumerate(wanted)]
    pairs = paired([(bind, one.name) for bind, one in zip(bound, wanted, strict=True)], stored)
    kept = {row.id for row in pairs if row is not None}
    lost = {row.position for row in stored if row.is_lost and row.id not in kept}
    if len(wanted) + len(lost) > COMPONENTS_MOST:
        rule = f"must have at most {COMPONENTS_MOST} entries, with {len(lost)} of a deleted source"
        raise Refused("invalid", "components", rule)
    for row in stored:
        if row.id not in kept and not row.is_lost:
            await status_components.delete_component(tx, row)
    places = (place for place in count() if place not in lost)
    for at, (one, bind, before) in enumerate(zip(wanted, bound, pairs, strict=True)):
        if one.show_latency and not await select_measures_latency(tx, page.org, bind.monitor):
            rule = "is for a component of a monitor that measures latency"
            raise Refused("invalid", f"components[{at}].show_latency", rule)
        await _put_component(tx, page, next(places), one, bind, before)


async def _bound_of(tx: Tx, page: PageRow, at: int, one: ComponentDraft) -> ComponentBinding:
    """Returns the binding. The source is locked, or new and without a state yet."""
    assert page.project is not None, "a bundle writes pages of its project"
    target, key = one.target, None
    if target.monitor is not None:
        found = await monitors.select_ids(tx, page.org, page.project, [target.monitor])
        key = found.get(target.monitor)
        bound = ComponentBinding(source=ComponentSource.MONITOR, monitor=key)
    elif target.service is not None:
        known = await select_service_ids(tx, page.org, page.project, [target.service])
        key = known.get(target.service)
        bound = ComponentBinding(source=ComponentSource.SERVICE, service=key)
    else:
        return ComponentBinding(source=ComponentSource.MANUAL, manual_status=target.manual_status)
    if key is None:
        raise Refused("invalid", f"components[{at}]", BINDING_NOT_FOUND)
    return bound


async def _put_component(
    tx: Tx,
    page: PageRow,
    at: int,
    one: ComponentDraft,
    bound: ComponentBinding,
    before: ComponentRow | None,
) -> None:
    if before is None:
        await status_components.insert_component(
            tx,
            page.org,
            page.id,
            uuid7(),
            bound,
            name=one.name,
            description=one.description,
            group=one.group,
            position=at,
            show_latency=one.show_latency,
        )
        return
    is_same = (before.source, before.monitor, before.service) == source_of(bound)
    if not is_same:
        await status_components.bind_component(tx, before, bound, keeps_latency=False)
    await status_components.update_component(
        tx,
        before,
        name=one.name,
        description=one.description,
        group=one.group,
        position=at,
        manual_status=before.manual_status if is_same else bound.manual_status,
        show_latency=one.show_latency,
    )


def source_of(bound: ComponentBinding) -> tuple[str, int | None, int | None]:
    return bound.source, bound.monitor, bound.service


def paired(
    wanted: Sequence[tuple[ComponentBinding, str]], stored: Sequence[ComponentRow]
) -> list[ComponentRow | None]:
    """Returns the stored component of each wanted one: by source and name, source, or name.

    A component of a deleted source becomes no manual one, since its status is not known.
    """
    found: list[ComponentRow | None] = [None] * len(wanted)
    free = list(stored)
    for by_source, by_name in ((True, True), (True, False), (False, True)):
        for at, (bound, name) in enumerate(wanted):
            if found[at] is not None or (not by_name and bound.source == ComponentSource.MANUAL):
                continue
            for row in free:
                if row.is_lost and bound.source == ComponentSource.MANUAL:
                    continue
                same = (row.source, row.monitor, row.service) == source_of(bound)
                if (same or not by_source) and (row.name == name or not by_name):
                    found[at] = row
                    free.remove(row)
                    break
    return found


def manual() -> BindingTarget:
    """Returns the source of a new component that people set."""
    return BindingTarget(manual_status=ComponentStatus.OPERATIONAL)
