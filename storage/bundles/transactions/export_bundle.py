"""Export of a project's monitors and services as a bundle.

Its application to the unchanged project changes no data. Objects of file providers and orphans are
omitted.
"""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from ...accounts.queries.projects import select_organization
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import demand_project
from ...core.key import MonitorKey
from ...core.slug import free_slug
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ...monitors.tables.monitors import select_monitors_by_key
from ..rules.bundle_default import brief_monitor, brief_service
from ..rules.bundle_diff import API
from .bundle_context import BundleContext, M, ManagedObject, look_around, monitor_words
from .monitor_entries import in_words, present_draft
from .service_entries import standing_in_words
from .write_services import select_standing, service_words, words_of_members

EXPORT: Final = Permission(Need.EDITOR)


async def export_bundle(
    tx: Tx, principal: Principal, project: UUID, keyring: Keyring
) -> dict[str, Any]:
    """Returns the bundle document.

    Raises:
        Refused not_found, forbidden.
    """
    home = await demand_project(tx, principal, EXPORT, project)
    organization = await select_organization(tx, home.org_uid)
    assert organization is not None, "the organization contains the project"
    place = await look_around(tx, home)
    _take(place)
    monitors = await _monitors(tx, place, keyring)
    services = await _services(tx, place)
    found: dict[str, Any] = {
        "format": 2 if services else 1,
        "organization": organization.slug,
        "project": home.slug,
        "monitors": monitors,
    }
    return {**found, "services": services} if services else found


def _take(place: BundleContext) -> None:
    """Selects the exported objects by uid. Without a uid, it is the slug if that is free."""
    place.mine = _by_uid([one for one in place.names if _is_exported(one)])
    place.my_services = _by_uid([row for row in place.services if _is_exported(row)])


def _is_exported(one: ManagedObject) -> bool:
    return one.managed_by in ("", API) and one.orphaned_at is None


def _by_uid(rows: Sequence[M]) -> dict[str, M]:
    taken = {one.bundle_uid for one in rows if one.bundle_uid}
    found: dict[str, M] = {}
    for one in rows:
        uid = one.bundle_uid or free_slug(one.slug, taken)
        taken.add(uid)
        found[uid] = one
    return found


async def _monitors(tx: Tx, place: BundleContext, keyring: Keyring) -> dict[str, Any]:
    words = monitor_words(place)
    keys = [MonitorKey((place.home.org, one.id)) for one in place.mine.values()]
    rows = await select_monitors_by_key(tx, keys)
    found: dict[str, Any] = {}
    for uid, one in sorted(place.mine.items()):
        row = rows[MonitorKey((place.home.org, one.id))]
        settings = in_words(present_draft(row, place, keyring), words, place.policies)
        slug = {} if row.slug == uid else {"slug": row.slug}
        given = {"name": settings.pop("name"), "type": row.type, **slug}
        found[uid] = {**given, **brief_monitor(settings)}
    return found


async def _services(tx: Tx, place: BundleContext) -> dict[str, Any]:
    standing = await select_standing(tx, place, place.my_services)
    members = words_of_members(place, standing)
    of_services = service_words(place)
    found: dict[str, Any] = {}
    for uid, one in sorted(standing.items()):
        settings = standing_in_words(one, members, of_services, place)
        slug = {} if one.row.slug == uid else {"slug": one.row.slug}
        given = {"name": settings.pop("name"), **slug}
        found[uid] = {**given, **brief_service(settings)}
    return found
