"""Export of a project's monitors and services as a bundle.

Its application to the unchanged project changes no data and no owner, under any name. Objects of
file providers and orphans are omitted.
"""

from typing import Any, Final
from uuid import UUID

from ...accounts.queries.projects import select_organization
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import demand_project
from ...core.key import MonitorKey
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ...monitors.tables.monitors import select_monitors_by_key
from ..rules.bundle_default import brief_monitor, brief_service
from ..rules.bundle_owner import exported
from .bundle_context import BundleContext, look_around, monitor_words
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
    place.mine = exported(place.names)
    place.my_services = exported(place.services)
    monitors = await _monitors(tx, place, keyring)
    services = await _services(tx, place)
    found: dict[str, Any] = {
        "format": 2 if services else 1,
        "organization": organization.slug,
        "project": home.slug,
        "monitors": monitors,
    }
    return {**found, "services": services} if services else found


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
