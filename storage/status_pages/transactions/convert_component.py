"""Conversion of a component to another source, after a preview.

The preview is rendered from one snapshot and names the component's revision and the page's
generation. If either has changed, the conversion is refused, because the result would differ from
the preview.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries import status_page_components
from ..queries.component_latency import select_measures_latency
from ..queries.status_page_components import BoundComponent, select_component_facts
from ..rows import ComponentBinding, ComponentRow, PageRow
from ..rules.status_page import (
    Audience,
    Component,
    ComponentFacts,
    ComponentSource,
    Page,
    PageFacts,
    Summary,
    Visibility,
    render,
)
from ..rules.status_page_edit import BindingTarget, conversion_fault, conversion_notes
from ..tables import status_page_components as status_components
from ..tables import status_pages
from .edit_components import component_target, find_component, written
from .edit_pages import demand_page, expect_unmanaged_page, find_page, lock_page
from .lock_bindings import find_bound, lock_bindings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionPreview:
    """Current and proposed component with the page's summaries.

    `reverts_to` is the current source, None if nothing would change.
    """

    component: Component
    proposed: Component
    summary: Summary
    proposed_summary: Summary
    revision: int
    generation: int
    reverts_to: ComponentSource | None
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionBase:
    """Revision and generation that a conversion was decided on."""

    revision: int
    generation: int


async def preview_conversion(
    tx: Tx, principal: Principal, component: UUID, source: ComponentSource, target: BindingTarget
) -> ConversionPreview:
    """Returns the preview. Writes no rows.

    The transaction must have one snapshot for a consistent preview.

    Raises:
        Refused not_found, forbidden, invalid, binding not found.
    """
    row = await find_component(tx, component)
    page = await demand_page(tx, principal, row.page_uid)
    _expect_target(source, target)
    bound = await find_bound(tx, page, target)
    facts, proposed = await _facts_with(tx, page, row, bound)
    before = _rendered(page, facts, tx)
    after = _rendered(page, [proposed if f.uid == row.uid else f for f in facts], tx)
    is_noop = bound == row.bound
    is_bound = row.monitor is not None or row.service is not None
    notes = conversion_notes(ComponentSource(row.source), source, is_bound=is_bound)
    return ConversionPreview(
        component=_one(before, row.uid),
        proposed=_one(after, row.uid),
        summary=before.summary,
        proposed_summary=after.summary,
        revision=row.revision,
        generation=page.generation,
        reverts_to=None if is_noop else ComponentSource(row.source),
        notes=[] if is_noop else notes,
    )


async def _facts_with(
    tx: Tx, page: PageRow, row: ComponentRow, bound: ComponentBinding
) -> tuple[Sequence[ComponentFacts], ComponentFacts]:
    """Returns the facts of the current components and of the proposed one, read together."""
    rows = await status_page_components.select_components_of(tx, page.org, page.id)
    bindings = [_binding(each, each.bound) for each in rows]
    *facts, proposed = await select_component_facts(tx, page.org, [*bindings, _binding(row, bound)])
    return facts, proposed


def _binding(row: ComponentRow, bound: ComponentBinding) -> BoundComponent:
    return BoundComponent(
        uid=row.uid,
        name=row.name,
        description=row.description,
        group=row.group,
        show_latency=row.show_latency,
        updated_at=row.updated_at,
        **msgspec.structs.asdict(bound),
    )


def _rendered(page: PageRow, components: Sequence[ComponentFacts], tx: Tx) -> Page:
    """Renders with the function of the page itself, so that the preview is accurate."""
    facts = PageFacts(
        slug=page.slug,
        title=page.title,
        visibility=Visibility(page.visibility),
        project=page.project_uid,
        components=components,
        incidents=(),
        maintenance=(),
        as_of=tx.now,
    )
    return render(facts, Audience.MEMBER)


def _one(page: Page, uid: UUID) -> Component:
    return next(one for one in page.components if one.uid == uid)


async def convert_component(
    tx: Tx,
    principal: Principal,
    component: UUID,
    source: ComponentSource,
    target: BindingTarget,
    seen: ConversionBase,
) -> ComponentRow:
    """Binds a component to another source. The current source is not written again.

    Raises:
        Refused not_found, forbidden, invalid, binding not found, page_configuration_stale,
        managed_by_file.
    """
    found = await find_component(tx, component)
    page = await find_page(tx, principal, found.page_uid)
    _expect_target(source, target)
    bound = await lock_bindings(tx, page, target)
    page = await lock_page(tx, page)
    await expect_unmanaged_page(tx, principal, page)
    before = await find_component(tx, component)
    if (before.revision, page.generation) != (seen.revision, seen.generation):
        raise Refused("page_configuration_stale")
    if bound == before.bound:
        return before
    keeps_latency = await select_measures_latency(tx, page.org, bound.monitor)
    await status_components.bind_component(tx, before, bound, keeps_latency=keeps_latency)
    await status_pages.raise_generation(tx, page)
    row = await written(tx, component)
    ends = f" {_end(before)}->{_end(row)}"
    await audit(tx, principal, row.org, "status_component.convert", component_target(row) + ends)
    return row


def _expect_target(source: ComponentSource, target: BindingTarget) -> None:
    fault = conversion_fault(source, target)
    if fault is not None:
        raise Refused("invalid", *fault)


def _end(row: ComponentRow) -> str:
    """Returns source and id of a binding; only the source if the object is deleted."""
    uid = row.monitor_uid or row.service_uid
    return row.source if uid is None else f"{row.source}:{uid}"
