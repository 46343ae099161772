"""Application of a bundle: all or nothing.

The objects of the project become those of the bundle, in the sections that it states. Objects that
its file no longer names become orphans.

Invariant: a second application changes no data. No object moves to another project. A webhook that
its file no longer names is deleted, and no other object is. A plan is an application that is rolled
back, so it reports exactly the changes.

Locks:
    An application locks existing objects first, in the common order, and rows that schedulers and
    recorders wait for last. A plan locks neither.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Need, Permission
from ...accounts.tables.tenant_deletion import lock_shared_organization
from ...accounts.transactions.authorize import NOT_FOUND, demand_project
from ...alerting.tables.service_alerting import lock_alertings
from ...core.refusal import Refused
from ...engine.lock_refusal import refused_when_locked
from ...engine.pools import Conflicted, Pool, Tx
from ...monitors.rules.secret import references
from ...monitors.tables import monitors
from ...monitors.tables.secrets import lock_shared_secrets
from ...monitors.transactions.write_batch import MonitorWriteBatch
from ...notifications.tables.channels import lock_channel, lock_shared_channel
from ...oncall.tables.escalation_policies import lock_policy, lock_shared_policy
from ...oncall.tables.oncall_schedules import lock_schedule, lock_shared_schedules
from ...scheduling.tables import shards as schedules
from ...services.queries.services import select_services_of_project
from ...services.tables.service_dependencies import lock_graph
from ...services.tables.services import lock_services
from ..rules.bundle import Bundle
from ..rules.bundle_diff import API, BundleChange, counts_of, revision_of
from ..rules.bundle_owner import NamedObject
from ..tables.bundle_applications import insert_revision
from .bundle_context import (
    ApplySource,
    BundleContext,
    EntryContext,
    expect_home,
    include_oncall,
    look_around,
    match_monitors,
    match_oncall,
    match_services,
    monitor_ids,
    select_oncall,
)
from .stored_changes import revision_changes
from .write_maintenance import WantedMaintenance, compare_maintenance, write_maintenance
from .write_monitors import Wanted, compare_monitors, write_monitors
from .write_objectives import write_objectives
from .write_oncall import compare_oncall, expect_room, write_oncall
from .write_pages import WantedPages, compare_pages, write_pages
from .write_people import compare_people, write_people
from .write_routes import compare_routes, write_routes
from .write_services import compare_services, write_services
from .write_settings import WantedSettings, compare_settings, write_settings
from .write_webhooks import WantedWebhooks, compare_webhooks, write_webhooks

APPLY: Final = Permission(Need.PROJECT_ADMIN)
# The plan that was shown is no longer the one that an application would follow.
STALE: Final = "plan_stale"


@dataclass
class _NotKept(Exception):
    """Rolls back a plan and returns its changes."""

    changes: list[BundleChange]


async def plan_bundle(
    pool: Pool, project: UUID, bundle: Bundle, applied: ApplySource, terms: EntryContext
) -> list[BundleChange]:
    """Returns the changes that an application would make now.

    Raises:
        Refused as apply_bundle.
    """

    async def work(tx: Tx) -> None:
        together = MonitorWriteBatch(applied.principal, is_plan=True, edits_regional=True)
        raise _NotKept(await write_bundle(tx, together, project, bundle, applied, terms))

    try:
        with refused_when_locked():
            await pool.transact("plan_bundle", work)
    except _NotKept as plan:
        return plan.changes
    raise AssertionError("a plan is never kept")


async def apply_bundle(
    tx: Tx, project: UUID, bundle: Bundle, applied: ApplySource, terms: EntryContext
) -> list[BundleChange]:
    """Applies a bundle and returns the changes by entry. Must be last in its transaction.

    Schedulers wait for the end of the transaction.

    Raises:
        Refused as write_bundle.
    """
    together = MonitorWriteBatch(applied.principal, edits_regional=True)
    changes = await write_bundle(tx, together, project, bundle, applied, terms)
    await together.write_ahead(tx)
    await together.publish(tx)
    return changes


async def write_bundle(
    tx: Tx,
    together: MonitorWriteBatch,
    project: UUID,
    bundle: Bundle,
    applied: ApplySource,
    terms: EntryContext,
) -> list[BundleChange]:
    """Writes a bundle. The caller must write `together` afterwards.

    Raises:
        Refused not_found, forbidden, invalid with the entry and its field, bundle_conflict with the
        entry that another owner has, plan_stale if the changes differ from the expected plan.
    """
    is_plan = together.is_plan
    home = await demand_project(tx, applied.principal, APPLY, project)
    # An invitation is written to the organization, whose lock comes first.
    if bundle.people and not is_plan and not await lock_shared_organization(tx, home.org_uid):
        raise Refused(NOT_FOUND)
    if await lock_graph(tx, home.org, home.id) is None:
        raise Refused(NOT_FOUND)
    await expect_home(tx, bundle, home)
    place = await look_around(tx, home)
    place.mine = match_monitors(place, bundle.monitors, applied.provider)
    place.format = bundle.format
    place.my_services = match_services(place, bundle.services, applied.provider)
    place.my_oncall = match_oncall(place, bundle, applied.provider)
    include_oncall(place, bundle, applied)
    place.coming = {uid: uuid7() for uid in bundle.monitors if uid not in place.mine}
    regions = sorted({one.region for one in bundle.monitors.values()} & terms.regions)
    for region in regions:
        place.shards[region] = await _shard_of(tx, region, is_plan=is_plan)
    if not is_plan:
        await _lock(tx, bundle, place, applied)
    place.coming_services = {
        uid: uuid7() for uid in bundle.services if uid not in place.my_services
    }
    wanted = await compare_monitors(tx, bundle, place, applied, terms)
    await _lock_references(tx, bundle, place, wanted, applied, is_plan=is_plan)
    people = await compare_people(tx, bundle, place, applied)
    oncall = await compare_oncall(tx, bundle, place, applied)
    wanted_services = await compare_services(tx, bundle, place, applied)
    routes = compare_routes(bundle, place, applied)
    last = await _compare_last(tx, bundle, place, applied)
    changes = [
        *people.changes,
        *oncall.changes,
        *wanted.changes,
        *wanted_services.changes,
        *routes.changes,
        *last.changes,
    ]
    if applied.revision and applied.revision != revision_of(applied.path, changes):
        rule = "the project has changed since the plan was made: make a new plan"
        raise Refused(STALE, "", rule)
    applied.progress.begin(len(changes), counts_of(changes).unchanged)
    expect_room(place, oncall)
    tx.holds_all()
    await write_people(tx, place, people, applied, is_plan=is_plan)
    await write_oncall(tx, together, place, oncall, applied, terms)
    await write_monitors(tx, together, bundle, place, wanted, applied, terms)
    await write_services(tx, place, wanted_services, applied, terms, is_plan=is_plan)
    await write_routes(tx, together, place, routes, applied)
    await _write_last(tx, together, bundle, place, wanted, last, applied, terms)
    counts = counts_of(changes)
    if not is_plan and applied.provider == API and counts.any_change:
        label, kept = applied.principal.label, revision_changes(changes)
        await insert_revision(tx, home.org, home.id, applied.path, label, counts, kept)
    return changes


@dataclass(slots=True)
class _Last:
    """Compared sections that are written after the services."""

    series: WantedMaintenance
    pages: WantedPages
    webhooks: WantedWebhooks
    settings: WantedSettings

    @property
    def changes(self) -> list[BundleChange]:
        wanted = (self.series, self.pages, self.webhooks, self.settings)
        return [one for section in wanted for one in section.changes]


async def _compare_last(
    tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource
) -> _Last:
    return _Last(
        await compare_maintenance(tx, bundle, place, applied),
        await compare_pages(tx, bundle, place, applied),
        await compare_webhooks(tx, bundle, place, applied),
        await compare_settings(tx, bundle, place, applied),
    )


async def _write_last(
    tx: Tx,
    together: MonitorWriteBatch,
    bundle: Bundle,
    place: BundleContext,
    wanted: Wanted,
    last: _Last,
    applied: ApplySource,
    terms: EntryContext,
) -> None:
    is_plan = together.is_plan
    await write_settings(tx, place, last.settings, applied, is_plan=is_plan)
    await write_objectives(tx, bundle, place, wanted, applied, is_plan=is_plan)
    await write_pages(tx, place, last.pages, applied, terms, is_plan=is_plan)
    await write_webhooks(tx, together, place, last.webhooks, applied, terms)
    await write_maintenance(tx, together, place, last.series, applied)


def _own_keys(place: BundleContext, applied: ApplySource) -> set[int]:
    mine = {one.id for one in place.mine.values()}
    return mine | {
        one.id
        for one in place.names
        if one.managed_by == applied.provider and one.bundle_path == applied.path
    }


async def _shard_of(tx: Tx, region: str, *, is_plan: bool) -> int:
    """Returns the shard. A plan creates no shard, since other transactions would wait for it."""
    if is_plan:
        return await schedules.select_shard_id(tx, 0, region) or 0
    return await schedules.ensure_shard(tx, 0, region, tx.now)


async def _lock(tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource) -> None:
    """Locks services, their alerting, and monitors."""
    home = place.home
    keys = _own_keys(place, applied)
    held = [
        row.key
        for row in place.services
        if row.managed_by == applied.provider or row in place.my_services.values()
    ]
    await lock_services(tx, held)
    await lock_alertings(tx, held)
    # Read again under the lock.
    place.services = await select_services_of_project(tx, home.org, home.id)
    place.my_services = match_services(place, bundle.services, applied.provider)
    await monitors.lock_monitors_of(tx, home.org, keys)
    referred = _referred(bundle, place) - keys
    await monitors.lock_shared_monitors_of(tx, home.org, referred)


def _referred(bundle: Bundle, place: BundleContext) -> set[int]:
    """Returns the keys of referenced monitors. The caller removes those of the bundle."""
    ids = monitor_ids(place)
    by_uid = {one.uid: one.id for one in place.names}
    words: set[str] = set()
    for service in bundle.services.values():
        words.update(service.monitors)
    for monitor in bundle.monitors.values():
        words.update(monitor.depends_on)
    for page in bundle.status_pages.values():
        words.update(one.monitor for one in page.components)
    return {by_uid[ids[word]] for word in words if word in ids and ids[word] in by_uid}


async def _lock_references(
    tx: Tx,
    bundle: Bundle,
    place: BundleContext,
    wanted: Wanted,
    applied: ApplySource,
    *,
    is_plan: bool,
) -> None:
    """Locks the referenced secrets, and the on-call objects; those of the bundle exclusively."""
    home, oncall = place.home, place.oncall
    configs = [draft.config for draft in wanted.drafts.values()]
    configs += [dict(entry.config) for entry in bundle.channels.values()]
    names = {name for config in configs for name in references(config).values()}
    names |= {entry.secret_ref for entry in bundle.webhooks.values()} - {""}
    await lock_shared_secrets(tx, home.org, home.id, names)
    mine = set() if is_plan else {uid for _, uid in place.my_oncall.ids} | _owned(place, applied)
    for policy in sorted(oncall.policies, key=lambda row: row.uid):
        if policy.uid in mine:
            await lock_policy(tx, policy.uid)
        else:
            await lock_shared_policy(tx, home.org, home.id, policy.uid)
    for schedule in oncall.schedules:
        if schedule.uid in mine:
            await lock_schedule(tx, schedule.uid)
    others = {row.uid for row in oncall.schedules} - mine
    await lock_shared_schedules(tx, home.org, home.id, others)
    attached = {uid for chosen in wanted.attached.values() for uid in chosen}
    for channel in oncall.channels:
        if channel.uid in mine:
            await lock_channel(tx, channel.uid)
        elif channel.uid in attached:
            await lock_shared_channel(tx, home.org, home.id, channel.uid)
    if is_plan:
        return
    # Read again under the lock.
    place.oncall, before = await select_oncall(tx, home), place.my_oncall.ids
    place.my_oncall = match_oncall(place, bundle, applied.provider)
    new = {place.channels.uids[uid] for uid in bundle.channels}
    gone = attached - {row.uid for row in place.oncall.channels} - new
    if place.my_oncall.ids != before or gone:
        raise Conflicted("another transaction changed what the bundle names")


def _owned(place: BundleContext, applied: ApplySource) -> set[UUID]:
    """Returns the on-call objects that can become orphans."""
    oncall = place.oncall
    rows: list[NamedObject] = [*oncall.policies, *oncall.schedules, *oncall.channels]
    return {
        row.uid
        for row in rows
        if row.managed_by == applied.provider and row.bundle_path == applied.path
    }
