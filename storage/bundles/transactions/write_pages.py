"""Write of a bundle's status pages, after the monitors and services that they show.

Only an administrator of the organization edits pages by hand, so only such a one can apply a
changed page. An orphan stays as it is: its readers have the address.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...accounts.queries.object_marks import select_marks
from ...accounts.transactions.object_marks import PAGE
from ...core.refusal import Refused
from ...engine.pools import Conflicted, Tx
from ...status_pages.queries.status_page_components import select_components_of
from ...status_pages.queries.status_pages import select_pages_of_project
from ...status_pages.rows import ComponentRow, PageRow
from ...status_pages.rules.branding import PageBranding
from ...status_pages.rules.status_page import Visibility
from ...status_pages.rules.status_page_edit import BindingTarget, ComponentDraft
from ...status_pages.tables.status_pages import lock_status_page
from ...status_pages.transactions.edit_pages import EDIT
from ...status_pages.transactions.put_held_page import (
    WholePage,
    manual,
    put_held_page,
    whole_page_fault,
)
from ..rows import ObjectRow
from ..rules.bundle import Bundle
from ..rules.bundle_diff import BundleChange
from ..rules.bundle_owner import is_left, match_named
from ..rules.bundle_page import PageEntry, page_slug
from ..tables.bundle_ownership import ensure_marks
from .bundle_context import (
    ApplySource,
    BundleContext,
    EntryContext,
    monitor_ids,
    monitor_words,
    resolve,
)
from .compared_section import (
    ComparedSection,
    compare_section,
    expect_editor,
    object_row,
    write_section,
)
from .write_services import service_words

PAGE_DEFAULTS: Final[dict[str, Any]] = {
    "visibility": "listed",
    "timezone": "UTC",
    "language": "auto",
    "branding": {},
    "components": [],
}
COMPONENT_DEFAULTS: Final[dict[str, Any]] = {
    "description": "",
    "group": "",
    "monitor": "",
    "service": "",
    "show_latency": False,
}


@dataclass(slots=True)
class WantedPages:
    """Compared pages, with the ids of all by uid, and the seen generations of existing ones."""

    section: ComparedSection[ObjectRow, WholePage]
    ids: dict[str, UUID]
    generations: dict[UUID, int]

    @property
    def changes(self) -> list[BundleChange]:
        return self.section.changes


async def select_pages(tx: Tx, place: BundleContext) -> tuple[list[ObjectRow], dict[UUID, int]]:
    """Returns the pages of the project in the order of their ids, and their generations."""
    home, monitors, services = place.home, monitor_words(place), service_words(place)
    marks = await select_marks(tx, home.org, home.id, PAGE)
    found, generations = [], {}
    for row in await select_pages_of_project(tx, home.org, home.id):
        components = await select_components_of(tx, home.org, row.id)
        settings = _in_words(row, components, monitors, services)
        found.append(object_row(marks, row.id, row.uid, row.slug, settings))
        generations[row.uid] = row.generation
    return found, generations


def _in_words(
    row: PageRow,
    components: list[ComponentRow],
    monitors: Mapping[UUID, str],
    services: Mapping[int, str],
) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "title": row.title,
        "visibility": row.visibility,
        "timezone": row.time_zone,
        "language": row.language,
        "branding": asdict(row.branding),
        "components": [
            {
                "name": one.name,
                "description": one.description,
                "group": one.group,
                "monitor": "" if one.monitor_uid is None else monitors[one.monitor_uid],
                "service": "" if one.service is None else services[one.service],
                "show_latency": one.show_latency,
            }
            for one in components
            # A bundle cannot state it, and an application keeps it.
            if not one.is_lost
        ],
    }


def brief_page(settings: Mapping[str, Any], uid: str) -> dict[str, Any]:
    """Returns a page of an export: without defaults."""
    found = {
        **settings,
        "branding": {name: value for name, value in settings["branding"].items() if value},
        "components": [
            {
                name: value
                for name, value in one.items()
                if name not in COMPONENT_DEFAULTS or value != COMPONENT_DEFAULTS[name]
            }
            for one in settings["components"]
        ],
    }
    return {
        name: value
        for name, value in found.items()
        if (name not in PAGE_DEFAULTS or value != PAGE_DEFAULTS[name])
        and not (name == "slug" and value == uid)
    }


async def compare_pages(
    tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource
) -> WantedPages:
    """Compares the status pages.

    Raises:
        Refused with the faulty entry, also if the caller may not edit pages and one would change.
    """
    if not bundle.states("status_pages"):
        return WantedPages(ComparedSection("status_pages", {}, {}, {}), {}, {})
    entries = bundle.status_pages
    rows, generations = await select_pages(tx, place)
    names = {uid: page_slug(uid, entry) for uid, entry in entries.items()}
    standing = match_named("status_pages", rows, names, applied.provider)
    words, by_key = monitor_words(place), service_words(place)
    of_services = {row.uid: by_key[row.id] for row in place.services}
    of_services |= {own: uid for uid, own in place.coming_services.items()}
    monitors, services = monitor_ids(place), _service_ids(place)
    drafts, after = {}, {}
    for uid, entry in entries.items():
        path = f"status_pages.{uid}"
        row = standing.get(uid)
        if row is not None and row.name != names[uid]:
            rule = f"is {row.name}, and slugs are not changed"
            raise Refused("invalid", f"{path}.slug", rule)
        drafts[uid] = _whole_page(path, uid, entry, monitors, services)
        wrong = whole_page_fault(drafts[uid])
        if wrong is not None:
            raise Refused("invalid", f"{path}.{wrong[0]}", wrong[1])
        after[uid] = _draft_in_words(drafts[uid], words, of_services)
    section = ComparedSection("status_pages", drafts, standing, {})
    before = {row.id: row.settings for row in rows}
    compare_section(section, bundle, rows, applied, before, after, {})
    expect_editor(section, place.home, applied, EDIT, "status pages")
    ids = {uid: standing[uid].uid if uid in standing else uuid7() for uid in entries}
    return WantedPages(section, ids, generations)


def _service_ids(place: BundleContext) -> dict[str, UUID]:
    """Returns the ids of services by reference. A uid in the bundle precedes a slug or an id."""
    found = {str(row.uid): row.uid for row in place.services}
    found.update({row.slug: row.uid for row in place.services})
    found.update({word: row.uid for word, row in place.my_services.items()})
    found.update(place.coming_services)
    return found


def _whole_page(
    path: str,
    uid: str,
    entry: PageEntry,
    monitors: Mapping[str, UUID],
    services: Mapping[str, UUID],
) -> WholePage:
    components = []
    for at, one in enumerate(entry.components):
        here = f"{path}.components[{at}]"
        target = manual()
        if one.monitor:
            target = BindingTarget(monitor=resolve(f"{here}.monitor", [one.monitor], monitors)[0])
        if one.service:
            target = BindingTarget(service=resolve(f"{here}.service", [one.service], services)[0])
        components.append(
            ComponentDraft(
                name=one.name,
                target=target,
                description=one.description,
                group=one.group,
                show_latency=one.show_latency,
            )
        )
    return WholePage(
        slug=page_slug(uid, entry),
        title=entry.title,
        visibility=Visibility(entry.visibility),
        time_zone=entry.timezone,
        language=entry.language,
        branding=PageBranding(**msgspec.structs.asdict(entry.branding)),
        components=components,
    )


def _draft_in_words(
    draft: WholePage, monitors: Mapping[UUID, str], services: Mapping[UUID, str]
) -> dict[str, Any]:
    return {
        "slug": draft.slug,
        "title": draft.title,
        "visibility": draft.visibility.value,
        "timezone": draft.time_zone,
        "language": draft.language,
        "branding": asdict(draft.branding),
        "components": [
            {
                "name": one.name,
                "description": one.description,
                "group": one.group,
                "monitor": "" if one.target.monitor is None else monitors[one.target.monitor],
                "service": "" if one.target.service is None else services[one.target.service],
                "show_latency": one.show_latency,
            }
            for one in draft.components
        ],
    }


async def write_pages(
    tx: Tx,
    place: BundleContext,
    wanted: WantedPages,
    applied: ApplySource,
    terms: EntryContext,
    *,
    is_plan: bool,
) -> None:
    """Writes the pages. The slug is unique in the installation, so it is inserted late.

    Raises:
        Refused with the faulty entry.
    """
    home, section = place.home, wanted.section
    if not is_plan:
        for uid, row in section.standing.items():
            locked = None if is_left(row, applied) else await lock_status_page(tx, row.uid)
            if locked is not None and locked.generation != wanted.generations[row.uid]:
                raise Conflicted(f"another transaction changed the status page {uid}")
        if section.drafts:
            await ensure_marks(tx, "status_page", home.key, wanted.ids.values())

    async def put(uid: str, draft: WholePage, _: ObjectRow | None) -> None:
        own = wanted.ids[uid]
        if not is_plan:
            await put_held_page(tx, applied.principal, home, own, draft, terms.keyring)
            return
        async with tx.undone():
            await put_held_page(tx, applied.principal, home, own, draft, terms.keyring)

    order = list(section.acts)
    await write_section(tx, home.org, section, order, put, wanted.ids, applied, is_plan=is_plan)
