"""Write of a bundle's services after its monitors: new, changed and orphaned ones.

An orphan no longer pages and keeps its history. Existing services, their alerting and the project's
graph are locked before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from msgspec import UNSET

from ...accounts.transactions.authorize import audit
from ...alerting.tables.service_alerting import select_alertings
from ...alerting.transactions.edit_alerting import AlertingEdit, edit_alerting
from ...core.naming import name_fault
from ...core.refusal import Refused, expect
from ...core.runbook import runbook_fault
from ...engine.pools import Tx
from ...gate.queries.gate_policies import select_policies_of
from ...objectives.queries.burn_rules import select_rules_of_services
from ...objectives.queries.service_targets import select_service_targets
from ...objectives.transactions.set_service_objective import (
    delete_target_of,
    put_burn_alerting,
    put_target_of,
)
from ...services.queries.service_dependencies import select_edges, select_generation
from ...services.queries.service_revisions import select_revisions
from ...services.rows import ServiceRow
from ...services.rules.service_declaration import description_fault
from ...services.tables.service_dependencies import put_edges
from ...services.tables.services import select_service_ids, update_service
from ...services.transactions.create_service import ServiceDraft, create_service
from ...services.transactions.declare_service import DeclarationDraft, declare
from ...services.transactions.edit_dependencies import put_dependencies
from ...services.transactions.lock_service import target_of
from ...services.transactions.set_paging_target import lock_owning_policy, lock_owning_schedule
from ...services.transactions.set_support_hours import put_support_hours
from ..rules.bundle import AlertingEntry, Bundle, ServiceEntry
from ..rules.bundle_default import brief_service
from ..rules.bundle_diff import BundleAction, BundleChange, FieldChange, change_of, in_order
from ..rules.bundle_owner import expect_owned, is_left, left_out, marks_of, owner_change
from ..rules.bundle_settings import GatePolicyEntry
from ..tables.bundle_ownership import mark_gates, mark_hours, put_marks
from .bundle_context import (
    ApplySource,
    BundleContext,
    EntryContext,
    monitor_ids,
    monitor_words,
    resolve,
    resolve_named,
    under,
)
from .oncall_entries import hours_of_entry
from .service_entries import StoredService, entry_in_words, policies_of, rule_of, standing_in_words
from .write_settings import put_gate_policy

# Reported if an entry begins or ends to state hours or a gate policy, also if these stay the same.
_HOURS_MANAGED: Final = "hours_managed"
_GATE_MANAGED: Final = "gate_managed"


@dataclass(slots=True)
class WantedServices:
    entries: dict[str, ServiceEntry]
    standing: dict[str, StoredService]
    orphans: dict[str, StoredService]
    changes: list[BundleChange] = field(default_factory=list)


async def select_standing(
    tx: Tx, place: BundleContext, rows: Mapping[str, ServiceRow]
) -> dict[str, StoredService]:
    """Returns the existing services under the same uids."""
    keys = [row.key for row in rows.values()]
    revisions = await select_revisions(tx, keys)
    alertings = await select_alertings(tx, keys)
    targets = await select_service_targets(tx, keys)
    rules = await select_rules_of_services(tx, keys)
    edges = await select_edges(tx, place.home.org, place.home.id)
    gates = await select_policies_of(tx, place.home.org, place.home.id)
    return {
        uid: StoredService(
            row=row,
            alerting=alertings[row.key],
            revision=revisions[row.key][-1] if revisions[row.key] else None,
            declared=len(revisions[row.key]),
            upstreams=edges.get(row.id, ()),
            targets=targets[row.key],
            rules=rules.get(row.key, {}),
            gate_policy=gates[row.id].document if row.id in gates else None,
        )
        for uid, row in rows.items()
    }


def words_of_members(place: BundleContext, standing: Mapping[str, StoredService]) -> dict[int, str]:
    """Returns the references of all member monitors by key, including deleted ones."""
    words = monitor_words(place)
    by_key = {one.id: words[one.uid] for one in place.names}
    for one in standing.values():
        members = () if one.revision is None else one.revision.monitors
        by_key.update({key: f"#{key}" for key in members if key not in by_key})
    return by_key


def service_words(place: BundleContext) -> dict[int, str]:
    """Returns the reference of each service by key, see `monitor_words`."""
    found = {
        row.id: str(row.uid) if row.slug in place.my_services else row.slug
        for row in place.services
    }
    found.update({row.id: uid for uid, row in place.my_services.items()})
    return found


def _words_given(place: BundleContext, bundle: Bundle) -> dict[str, str]:
    """Returns the references of services by uid, slug and id. A uid takes precedence."""
    words = service_words(place)
    found = {str(row.uid): words[row.id] for row in place.services}
    found.update({row.slug: words[row.id] for row in place.services})
    found.update({uid: uid for uid in bundle.services})
    return found


async def compare_services(
    tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource
) -> WantedServices:
    orphans: dict[str, ServiceRow] = {}
    if bundle.states("services"):
        orphans = left_out("service", place.services, bundle.services, applied)
    found = WantedServices(
        bundle.services,
        await select_standing(tx, place, place.my_services),
        await select_standing(tx, place, orphans),
    )
    members = words_of_members(place, found.standing)
    ids, words, given = monitor_ids(place), monitor_words(place), _words_given(place, bundle)
    of_services = service_words(place)
    for uid, entry in bundle.services.items():
        after = entry_in_words(uid, entry, ids, words, given, place)
        standing = found.standing.get(uid)
        before, over = None, None
        if standing is not None:
            hours, gate = entry.support_hours is not UNSET, entry.gate_policy is not UNSET
            before = standing_in_words(
                standing, members, of_services, place, with_hours=hours, with_gate=gate
            )
            over = owner_change(standing.row, applied)
            if not is_left(standing.row, applied):
                before |= {
                    _HOURS_MANAGED: standing.row.hours_managed,
                    _GATE_MANAGED: standing.row.gate_managed,
                }
                after |= {_HOURS_MANAGED: hours, _GATE_MANAGED: gate}
        else:
            after = brief_service(after)
        change = change_of("service", uid, before, after, over)
        if standing is not None:
            names = [one.name for one in change.fields]
            expect_owned(f"services.{uid}", standing.row, applied, names)
        found.changes.append(change)
    for uid, standing in found.orphans.items():
        change = BundleChange(
            kind="service", uid=uid, action=BundleAction.ORPHAN, fields=_silenced(standing)
        )
        found.changes.append(change)
    return found


def _silenced(standing: StoredService) -> list[FieldChange]:
    """Returns the alerting settings that an orphan loses."""
    names = ["alerting.owns_paging"] if standing.alerting.owns_paging else []
    names += [
        f"sla_targets.{window}.burn_alert_enabled"
        for window, target in sorted(standing.targets.items())
        if target.burn_enabled
    ]
    return [FieldChange(name=name, from_=True, to=False) for name in names]


async def write_services(
    tx: Tx,
    place: BundleContext,
    wanted: WantedServices,
    applied: ApplySource,
    terms: EntryContext,
    *,
    is_plan: bool,
) -> None:
    """Writes the services.

    Raises:
        Refused with the faulty entry.
    """
    acts = {
        one.uid: one
        for one in wanted.changes
        if one.action in (BundleAction.CREATE, BundleAction.UPDATE)
    }
    order, circle = in_order({uid: wanted.entries[uid].depends_on for uid in acts})
    if circle is not None:
        raise Refused("invalid", f"services.{circle}.depends_on", "must not lead back to itself")
    ids = {str(row.uid): row.uid for row in place.services}
    ids.update({row.slug: row.uid for row in place.services})
    ids.update({uid: row.uid for uid, row in place.my_services.items()})
    write = _Write(tx, place, applied, terms, ids, monitor_ids(place))
    for uid in order:
        with under(f"services.{uid}"):
            entry, standing = wanted.entries[uid], wanted.standing.get(uid)
            if standing is None:
                ids[uid] = await write.create(uid, entry)
            elif is_plan:
                await write.plan_update(uid, entry, standing, acts[uid])
            else:
                await write.update(uid, entry, standing, acts[uid])
        applied.progress.wrote(acts[uid].action, "service", uid)
    if is_plan:
        return
    for uid, standing in wanted.orphans.items():
        with under(f"services.{uid}"):
            await write.silence(standing)
        applied.progress.wrote(BundleAction.ORPHAN, "service", uid)
    own = {uid: ids[uid] for uid in wanted.entries}
    rows = {uid: standing.row for uid, standing in wanted.standing.items()}
    orphans = {uid: standing.row.uid for uid, standing in wanted.orphans.items()}
    marks = marks_of(own, rows, orphans, applied, tx.now)
    await put_marks(tx, "service", place.home.org, marks)
    mine = {
        own[uid]: one for uid, one in wanted.entries.items() if not is_left(rows.get(uid), applied)
    }
    hours = {uid: one.support_hours is not UNSET for uid, one in mine.items()}
    await mark_hours(tx, place.home.org, hours)
    gates = {uid: one.gate_policy is not UNSET for uid, one in mine.items()}
    await mark_gates(tx, place.home.org, gates)


@dataclass(frozen=True, slots=True)
class _Write:
    """Writer of services. `ids` and `monitors` map references to ids."""

    tx: Tx
    place: BundleContext
    applied: ApplySource
    terms: EntryContext
    ids: dict[str, UUID]
    monitors: Mapping[str, UUID]

    async def create(self, uid: str, entry: ServiceEntry) -> UUID:
        draft = ServiceDraft(
            name=entry.name if isinstance(entry.name, str) else uid,
            slug=entry.slug if isinstance(entry.slug, str) else uid,
            description=entry.description,
            runbook_url=entry.runbook_url,
            escalation_policy=self._policy(entry),
            oncall_schedule=self._schedule(entry),
            depends_on=resolve("depends_on", entry.depends_on, self.ids),
        )
        who, project = self.applied.principal, self.place.home.uid
        row = await create_service(self.tx, who, project, draft, self.place.coming_services[uid])
        if entry.support_hours is not UNSET:
            await self._set_hours(row.uid, entry)
        if entry.monitors:
            await self._declare(row.uid, entry, 0)
        await self._write_alerting(row.uid, entry.alerting)
        await self._aim(row, entry, {})
        if entry.gate_policy is not UNSET:
            await self._gate(row, entry.gate_policy)
        return row.uid

    async def update(
        self, uid: str, entry: ServiceEntry, standing: StoredService, change: BundleChange
    ) -> None:
        row = standing.row
        changed = {one.name.partition(".")[0] for one in change.fields}
        if changed & {"name", "description", "runbook_url", "escalation_policy", "oncall_schedule"}:
            await self._describe(uid, entry, row)
        if "support_hours" in changed:
            await self._set_hours(row.uid, entry)
        if "depends_on" in changed:
            generation = await select_generation(self.tx, row.org, row.project)
            upstreams = resolve("depends_on", entry.depends_on, self.ids)
            who, project = self.applied.principal, self.place.home.uid
            await put_dependencies(self.tx, who, project, row.uid, upstreams, generation)
        if changed & {"monitors", "sli", "policies"} and (entry.monitors or standing.declared):
            if not entry.monitors:
                raise Refused("invalid", "monitors", "is declared, which is not taken back")
            await self._declare(row.uid, entry, standing.declared)
        if "alerting" in changed:
            await self._write_alerting(row.uid, entry.alerting)
        if "sla_targets" in changed:
            await self._aim(row, entry, standing.targets)
        if "gate_policy" in changed and entry.gate_policy is not UNSET:
            await self._gate(row, entry.gate_policy)

    async def plan_update(
        self, uid: str, entry: ServiceEntry, standing: StoredService, change: BundleChange
    ) -> None:
        """Applies the update and rolls it back, so that other transactions wait only briefly.

        Only the dependencies are kept for the check of cycles.

        Raises:
            Refused as update.
        """
        row, home = standing.row, self.place.home
        async with self.tx.undone():
            await self.update(uid, entry, standing, change)
        if "depends_on" in {one.name for one in change.fields}:
            upstreams = resolve("depends_on", entry.depends_on, self.ids)
            known = await select_service_ids(self.tx, home.org, home.id, upstreams)
            await put_edges(self.tx, row.key, [known[one] for one in upstreams])

    async def silence(self, standing: StoredService) -> None:
        """Disables paging and burn alerts of an orphan. Its figures continue."""
        row = standing.row
        who, project = self.applied.principal, self.place.home.uid
        if standing.alerting.owns_paging:
            await edit_alerting(self.tx, who, project, row.uid, AlertingEdit(owns_paging=False))
        for window, target in standing.targets.items():
            if target.burn_enabled:
                rules = [one.rule for one in standing.rules.get(window, ())]
                await put_burn_alerting(
                    self.tx, who, project, row.uid, window, rules, enabled=False
                )

    async def _set_hours(self, service: UUID, entry: ServiceEntry) -> None:
        zone, windows = hours_of_entry(entry)
        who, project = self.applied.principal, self.place.home.uid
        with under("support_hours"):
            await put_support_hours(self.tx, who, project, service, zone, windows)

    async def _describe(self, uid: str, entry: ServiceEntry, row: ServiceRow) -> None:
        name = entry.name if isinstance(entry.name, str) else uid
        faults = {
            "name": name_fault(name),
            "description": description_fault(entry.description),
            "runbook_url": runbook_fault(entry.runbook_url),
        }
        for field_, fault in faults.items():
            expect(field_, fault)
        home = self.place.home
        await update_service(
            self.tx,
            row.key,
            name=name,
            description=entry.description,
            runbook_url=entry.runbook_url,
            escalation_policy=await lock_owning_policy(
                self.tx, home.org, home.id, self._policy(entry)
            ),
            oncall_schedule=await lock_owning_schedule(
                self.tx, home.org, home.id, self._schedule(entry)
            ),
        )
        await audit(self.tx, self.applied.principal, row.org, "service.update", target_of(row))

    async def _declare(self, service: UUID, entry: ServiceEntry, expected: int) -> None:
        draft = DeclarationDraft(
            expected_revision=expected,
            monitors=resolve("monitors", entry.monitors, self.monitors),
            sli=resolve("sli", entry.sli, self.monitors),
            policies=policies_of("", entry),
        )
        who, project = self.applied.principal, self.place.home.uid
        await declare(self.tx, who, project, service, draft, self.terms.raw_days)

    async def _write_alerting(self, service: UUID, entry: AlertingEntry) -> None:
        edit = AlertingEdit(
            owns_paging=entry.owns_paging,
            page_on=frozenset(entry.page_on),
            page_on_unknown=entry.page_on_unknown,
            confirm_evaluations=entry.confirm_evaluations,
            renotify_seconds=entry.renotify_seconds,
        )
        who, project = self.applied.principal, self.place.home.uid
        with under("alerting"):
            await edit_alerting(self.tx, who, project, service, edit)

    async def _aim(
        self, row: ServiceRow, entry: ServiceEntry, before: Mapping[str, object]
    ) -> None:
        who, project = self.applied.principal, self.place.home.uid
        for window, target in entry.sla_targets.items():
            with under(f"sla_targets.{window}"):
                await put_target_of(self.tx, who, row, window, target.objective)
                rules = [rule_of(one) for one in target.burn_rules]
                await put_burn_alerting(
                    self.tx,
                    who,
                    project,
                    row.uid,
                    window,
                    rules,
                    enabled=target.burn_alert_enabled,
                )
        for gone in before.keys() - entry.sla_targets.keys():
            await delete_target_of(self.tx, who, row, gone)

    async def _gate(self, row: ServiceRow, entry: GatePolicyEntry | None) -> None:
        who = self.applied.principal
        with under("gate_policy"):
            await put_gate_policy(self.tx, who, self.place.home, row.uid, row.id, entry)

    def _policy(self, entry: ServiceEntry) -> str:
        return resolve_named("escalation_policy", entry.escalation_policy, self.place.policies)

    def _schedule(self, entry: ServiceEntry) -> str:
        return resolve_named("oncall_schedule", entry.oncall_schedule, self.place.schedules)
