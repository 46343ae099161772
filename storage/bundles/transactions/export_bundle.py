"""Export of a project's monitors, services and on-call objects as a bundle.

Its application to the unchanged project changes no data and no owner, under any name. Objects of
file providers and orphans are omitted.
"""

from typing import Any, Final
from uuid import UUID

from ...accounts.queries.projects import select_organization
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import demand_project
from ...engine.keyring import Keyring
from ...engine.pools import Tx
from ...monitors.rules.monitor import MonitorType
from ...monitors.tables.monitors import select_monitors_of
from ..queries import select_attached, select_bundle_people, select_stated
from ..rules.bundle import FORMATS, SECTIONS
from ..rules.bundle_default import brief_monitor, brief_service
from ..rules.bundle_diff import API
from ..rules.bundle_oncall import ROUTES_UID
from ..rules.bundle_owner import exported, exported_named
from ..rules.bundle_settings import SETTINGS_UID, brief_policy, brief_targets
from .bundle_context import BundleContext, OnCallMatches, look_around, monitor_words
from .monitor_entries import in_words, present_draft
from .oncall_entries import (
    CHANNEL_DEFAULTS,
    POLICY_DEFAULTS,
    ROUTES_DEFAULTS,
    SCHEDULE_DEFAULTS,
    brief,
    channel_in_words,
    routes_in_words,
)
from .regional_entries import REGIONAL, is_whole
from .service_entries import standing_in_words
from .target_entries import select_targets_in_words
from .write_maintenance import MAINTENANCE_DEFAULTS, select_series
from .write_monitors import channels_in_words
from .write_oncall import policies_in_words, schedules_in_words
from .write_pages import brief_page, select_pages
from .write_people import PERSON_DEFAULTS, row_in_words
from .write_services import select_standing, service_words, words_of_members
from .write_settings import SETTINGS_DEFAULTS, select_settings
from .write_webhooks import export_webhooks

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
    place.my_oncall = OnCallMatches(
        exported_named(place.oncall.channels, "channel"),
        exported_named(place.oncall.schedules, "schedule"),
        exported_named(place.oncall.policies, "policy"),
        exported_named(place.oncall.route_lists, ROUTES_UID),
    )
    for known, rows in (
        (place.channels, place.my_oncall.channels),
        (place.schedules, place.my_oncall.schedules),
        (place.policies, place.my_oncall.policies),
    ):
        for uid, row in rows.items():
            known.include(uid, row.uid, row.name)
    oncall = await _oncall(tx, place)
    found: dict[str, Any] = {
        "people": await _people(tx, place),
        "channels": oncall["channels"],
        "schedules": oncall["schedules"],
        "escalation_policies": oncall["escalation_policies"],
        "monitors": await _monitors(tx, place, keyring),
        "services": await _services(tx, place),
        "routes": oncall["routes"],
        "maintenance": await _maintenance(tx, place),
        "status_pages": await _pages(tx, place),
        "webhooks": await export_webhooks(tx, principal, home),
        "project_settings": await _settings(tx, place),
    }
    head = {
        "format": _format_of(found),
        "organization": organization.slug,
        "project": home.slug,
    }
    stated = {name: one for name, one in found.items() if one or name == "monitors"}
    return {**head, **stated}


def _format_of(found: dict[str, Any]) -> int:
    """Returns the first format that has everything of an export."""
    late = [
        ("services", "support_hours"),
        ("services", "gate_policy"),
        ("monitors", "channels"),
        ("monitors", "sla_targets"),
        ("monitors", REGIONAL),
    ]
    if any(name in one for section, name in late for one in found[section].values()):
        return FORMATS[-1]
    return max([1, *(SECTIONS[name][1] for name, entries in found.items() if entries)])


async def _maintenance(tx: Tx, place: BundleContext) -> dict[str, Any]:
    rows = exported_named(await select_series(tx, place), "maintenance")
    return {uid: brief(row.settings, MAINTENANCE_DEFAULTS) for uid, row in rows.items()}


async def _pages(tx: Tx, place: BundleContext) -> dict[str, Any]:
    rows = exported_named((await select_pages(tx, place))[0], "page")
    return {uid: brief_page(row.settings, uid) for uid, row in rows.items()}


async def _settings(tx: Tx, place: BundleContext) -> dict[str, Any]:
    rows = exported_named(await select_settings(tx, place.home), SETTINGS_UID)
    for row in rows.values():
        found = brief(row.settings, SETTINGS_DEFAULTS)
        if "gate_policy" in found:
            found["gate_policy"] = brief_policy(found["gate_policy"])
        return found
    return {}


async def _people(tx: Tx, place: BundleContext) -> dict[str, Any]:
    """Returns the people of bundles. All have a uid, since only bundles name people."""
    rows = await select_bundle_people(tx, place.home.org, place.home.id)
    return {
        row.bundle_uid: brief(row_in_words(row), PERSON_DEFAULTS)
        for row in rows
        if row.bundle_uid is not None and row.managed_by == API and row.orphaned_at is None
    }


async def _oncall(tx: Tx, place: BundleContext) -> dict[str, Any]:
    """Returns the sections of on-call objects, in the order of the objects."""
    mine, words = place.my_oncall, service_words(place)
    schedules = await schedules_in_words(tx, place, mine.schedules.values())
    policies = await policies_in_words(tx, place, mine.policies.values())
    routes = routes_in_words(place.oncall.routes, words, place) if mine.routes else {}
    return {
        "channels": {
            uid: brief(channel_in_words(row), CHANNEL_DEFAULTS)
            for uid, row in mine.channels.items()
        },
        "schedules": {
            uid: brief(schedules[row.id], SCHEDULE_DEFAULTS) for uid, row in mine.schedules.items()
        },
        "escalation_policies": {
            uid: brief(policies[row.id], POLICY_DEFAULTS) for uid, row in mine.policies.items()
        },
        "routes": brief(routes, ROUTES_DEFAULTS),
    }


async def _monitors(tx: Tx, place: BundleContext, keyring: Keyring) -> dict[str, Any]:
    words = monitor_words(place)
    keys = [one.id for one in place.mine.values()]
    rows = await select_monitors_of(tx, place.home.org, keys)
    attached = await select_attached(tx, place.home.org, place.home.id)
    stated = await select_stated(tx, place.home.org, place.home.id)
    targets = await select_targets_in_words(tx, place.home.org, keys)
    found: dict[str, Any] = {}
    for uid, one in sorted(place.mine.items()):
        row = rows[one.id]
        settings = in_words(present_draft(row, place, keyring), words, place.policies)
        if row.type == MonitorType.COMPOSITE:
            settings[REGIONAL] = is_whole(row)
        slug = {} if row.slug == uid else {"slug": row.slug}
        given = {"name": settings.pop("name"), "type": row.type, **slug}
        found[uid] = {**given, **brief_monitor(settings)}
        if one.id in attached:
            found[uid]["channels"] = channels_in_words(attached[one.id], place)
        if one.id in targets or stated.get(one.id, (False, False))[1]:
            found[uid]["sla_targets"] = brief_targets(targets.get(one.id, {}))
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
        if one.row.hours_managed:
            # Also none, since without it people edit the hours.
            found[uid].setdefault("support_hours", {})
        if "gate_policy" in found[uid] or one.row.gate_managed:
            found[uid]["gate_policy"] = brief_policy(settings["gate_policy"])
    return found
