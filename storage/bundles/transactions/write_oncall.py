"""Write of a bundle's channels, schedules, escalation policies and alert routes.

They are written before the monitors that refer to them, and the alert routes after the services. An
orphan keeps its settings: who refers to it would otherwise page nobody.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from uuid import UUID

from ...accounts.rules.access import Principal
from ...core.instant import SECOND
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...incidents.rows import RouteListRow
from ...incidents.tables.alert_routes import ensure_route_marks
from ...incidents.transactions.put_alert_routes import RouteDraft, put_held_routes
from ...monitors.transactions.write_batch import MonitorWriteBatch
from ...notifications.rows import ChannelRow
from ...notifications.transactions.edit_channels import (
    CHANNELS_OF_PROJECT_MOST,
    ChannelDraft,
    create_held_channel,
    edit_channel,
)
from ...oncall.queries.escalation_policies import select_targets
from ...oncall.queries.oncall_overrides import select_overrides_of
from ...oncall.queries.oncall_schedules import select_layers, select_participants
from ...oncall.rows import EscalationPolicyRow, ScheduleRow
from ...oncall.rules.escalation import (
    EscalationPolicy,
    EscalationStep,
    EscalationTarget,
    TargetKind,
    nested_in,
    nesting_fault,
)
from ...oncall.tables.escalation_policies import select_ladders_of
from ...oncall.transactions.edit_escalation_policies import (
    POLICIES_OF_PROJECT_MOST,
    PolicyDraft,
    create_held_policy,
    replace_held_policy,
)
from ...oncall.transactions.edit_overrides import create_override
from ...oncall.transactions.edit_schedules import (
    SCHEDULES_OF_PROJECT_MOST,
    create_held_schedule,
    replace_schedule,
)
from ..rules.bundle import SECTIONS, Bundle
from ..rules.bundle_diff import BundleAction, BundleChange, change_of, in_order
from ..rules.bundle_oncall import ROUTES_UID
from ..rules.bundle_owner import NamedObject, expect_owned, left_out, marks_of, owner_change
from ..tables.bundle_ownership import put_marks
from .bundle_context import ApplySource, BundleContext, EntryContext, under
from .oncall_entries import (
    CHANNEL_DEFAULTS,
    POLICY_DEFAULTS,
    ROUTES_DEFAULTS,
    SCHEDULE_DEFAULTS,
    BundledSchedule,
    OverrideDraft,
    brief,
    channel_in_words,
    draft_in_words,
    overrides_in_words,
    policy_draft_in_words,
    policy_in_words,
    route_drafts_in_words,
    routes_in_words,
    schedule_draft_in_words,
    schedule_in_words,
    wanted_channel,
    wanted_policy,
    wanted_routes,
    wanted_schedule,
)
from .write_services import service_words

R = TypeVar("R", bound=NamedObject)
D = TypeVar("D")
_WRITTEN: Final = frozenset({BundleAction.CREATE, BundleAction.UPDATE})
_LIMITS: Final = {
    "channels": CHANNELS_OF_PROJECT_MOST,
    "schedules": SCHEDULES_OF_PROJECT_MOST,
    "escalation_policies": POLICIES_OF_PROJECT_MOST,
}
RouteDrafts = tuple[list[RouteDraft], RouteDraft | None]


@dataclass(slots=True)
class ComparedSection(Generic[R, D]):
    """Compared entries of one section, with their drafts. `standing` and `orphans` are by uid."""

    section: str
    drafts: dict[str, D]
    standing: dict[str, R]
    orphans: dict[str, R]
    changes: list[BundleChange] = field(default_factory=list)

    @property
    def acts(self) -> dict[str, BundleAction]:
        return {one.uid: one.action for one in self.changes if one.action in _WRITTEN}


@dataclass(slots=True)
class WantedOnCall:
    channels: ComparedSection[ChannelRow, ChannelDraft]
    schedules: ComparedSection[ScheduleRow, BundledSchedule]
    policies: ComparedSection[EscalationPolicyRow, PolicyDraft]

    @property
    def changes(self) -> list[BundleChange]:
        return [*self.channels.changes, *self.schedules.changes, *self.policies.changes]


async def compare_oncall(
    tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource
) -> WantedOnCall:
    """Compares channels, schedules and escalation policies. Writes no rows.

    Raises:
        Refused with the faulty entry.
    """
    rows, mine = place.oncall, place.my_oncall
    channels = {
        uid: wanted_channel(uid, entry, mine.channels.get(uid))
        for uid, entry in bundle.channels.items()
    }
    schedules = {
        uid: wanted_schedule(uid, entry, place, tx.now) for uid, entry in bundle.schedules.items()
    }
    policies = {
        uid: wanted_policy(uid, entry, place) for uid, entry in bundle.escalation_policies.items()
    }
    of_schedules = await schedules_in_words(tx, place, mine.schedules.values())
    for uid, row in mine.schedules.items():
        # Other overrides than those of the entry are left alone.
        missing = await _missing_overrides(tx, row, schedules[uid])
        stored = [one for one in schedules[uid].overrides if one not in missing]
        if schedules[uid].overrides:
            of_schedules[row.id]["overrides"] = overrides_in_words(stored, place)
    of_policies = await policies_in_words(tx, place, mine.policies.values())
    found = WantedOnCall(
        ComparedSection("channels", channels, mine.channels, {}),
        ComparedSection("schedules", schedules, mine.schedules, {}),
        ComparedSection("escalation_policies", policies, mine.policies, {}),
    )
    _compare(
        found.channels,
        bundle,
        rows.channels,
        applied,
        {row.id: channel_in_words(row) for row in mine.channels.values()},
        {uid: draft_in_words(draft) for uid, draft in channels.items()},
        CHANNEL_DEFAULTS,
    )
    _compare(
        found.schedules,
        bundle,
        rows.schedules,
        applied,
        of_schedules,
        {uid: schedule_draft_in_words(draft, place) for uid, draft in schedules.items()},
        SCHEDULE_DEFAULTS,
    )
    _compare(
        found.policies,
        bundle,
        rows.policies,
        applied,
        of_policies,
        {uid: policy_draft_in_words(draft, place) for uid, draft in policies.items()},
        POLICY_DEFAULTS,
    )
    await _expect_nesting(tx, place, found.policies)
    return found


async def _missing_overrides(
    tx: Tx, row: ScheduleRow, wanted: BundledSchedule
) -> list[OverrideDraft]:
    """Returns the wanted overrides that do not exist, each once."""
    if not wanted.overrides:
        return []
    stored = {
        OverrideDraft(one.channel_uid, one.starts_at, one.ends_at)
        for one in await select_overrides_of(tx, row.org, row.id)
    }
    return [one for one in dict.fromkeys(wanted.overrides) if one not in stored]


async def schedules_in_words(
    tx: Tx, place: BundleContext, rows: Iterable[ScheduleRow]
) -> dict[int, dict[str, Any]]:
    """Returns the settings of schedules by key."""
    all_rows = list(rows)
    keys = [row.id for row in all_rows]
    layers = await select_layers(tx, place.home.org, keys)
    people = await select_participants(tx, place.home.org, keys)
    return {
        row.id: schedule_in_words(row, layers[row.id], people[row.id], place) for row in all_rows
    }


async def policies_in_words(
    tx: Tx, place: BundleContext, rows: Iterable[EscalationPolicyRow]
) -> dict[int, dict[str, Any]]:
    """Returns the settings of escalation policies by key."""
    all_rows = list(rows)
    targets = await select_targets(tx, place.home.org, [row.id for row in all_rows])
    return {
        row.id: policy_in_words(row, [one for one in targets if one.policy == row.id], place)
        for row in all_rows
    }


def _compare(
    found: ComparedSection[R, Any],
    bundle: Bundle,
    rows: Sequence[R],
    applied: ApplySource,
    before: Mapping[int, dict[str, Any]],
    after: Mapping[str, dict[str, Any]],
    defaults: Mapping[str, Any],
) -> None:
    """Adds the changes and orphans of a section. `before` are settings by key, `after` by uid."""
    kind = SECTIONS[found.section][0]
    for uid, settings in after.items():
        row = found.standing.get(uid)
        if row is None:
            change = change_of(kind, uid, None, brief(settings, defaults), None)
        else:
            over = owner_change(row, applied)
            change = change_of(kind, uid, before[row.id], settings, over)
            path = found.section if uid == ROUTES_UID else f"{found.section}.{uid}"
            expect_owned(path, row, applied, [one.name for one in change.fields])
        found.changes.append(change)
    if bundle.states(found.section):
        found.orphans = left_out(kind, rows, after, applied)
    found.changes += [
        BundleChange(kind=kind, uid=uid, action=BundleAction.ORPHAN) for uid in found.orphans
    ]


async def _expect_nesting(
    tx: Tx, place: BundleContext, wanted: ComparedSection[EscalationPolicyRow, PolicyDraft]
) -> None:
    """Checks the policies that the project will have, with those outside of the bundle.

    Raises:
        Refused invalid with the entry.
    """
    if not wanted.acts:
        return
    keys = {row.uid: row.id for row in place.oncall.policies}
    # A new policy has no key yet: a negative one stands for it.
    keys.update({own: keys.get(own, -at) for at, own in enumerate(place.policies.names, 1)})
    ladders = await select_ladders_of(tx, place.home.org, place.home.id)
    mine = {uid: keys[place.policies.uids[uid]] for uid in wanted.drafts}
    ladders.update({mine[uid]: _ladder(draft, keys) for uid, draft in wanted.drafts.items()})
    for uid in wanted.acts:
        fault = nesting_fault(_reachable(ladders, mine[uid]))
        if fault is not None:
            raise Refused("invalid", f"escalation_policies.{uid}.steps", fault)
    if (fault := nesting_fault(ladders)) is not None:
        raise Refused("invalid", "escalation_policies", f"a policy that names them {fault}")


def _ladder(draft: PolicyDraft, keys: Mapping[UUID, int]) -> EscalationPolicy:
    """Returns the steps of a draft with the policies that they name, and with no other key."""
    return EscalationPolicy(
        tuple(
            EscalationStep(
                step.after_seconds * SECOND,
                tuple(
                    EscalationTarget(kind, keys[UUID(own)] if kind is TargetKind.POLICY else 0)
                    for kind, own in step.targets
                ),
            )
            for step in draft.steps
        )
    )


def _reachable(ladders: Mapping[int, EscalationPolicy], root: int) -> dict[int, EscalationPolicy]:
    found: dict[int, EscalationPolicy] = {}
    wanted = {root}
    while wanted:
        found.update({key: ladders[key] for key in wanted if key in ladders})
        wanted = {one for key in wanted if key in ladders for one in nested_in(ladders[key])}
        wanted -= set(found)
    return found


def expect_room(place: BundleContext, wanted: WantedOnCall) -> None:
    """Checks the limits of the project, before anything is written.

    Raises:
        Refused invalid with the section.
    """
    rows = place.oncall
    for section, stored in (
        (wanted.channels, len(rows.channels)),
        (wanted.schedules, len(rows.schedules)),
        (wanted.policies, len(rows.policies)),
    ):
        new, most = len(section.drafts) - len(section.standing), _LIMITS[section.section]
        if new and stored + new > most:
            rule = f"would make more than {most} of the project"
            raise Refused("invalid", section.section, rule)


async def write_oncall(
    tx: Tx,
    together: MonitorWriteBatch,
    place: BundleContext,
    wanted: WantedOnCall,
    applied: ApplySource,
    terms: EntryContext,
) -> None:
    """Writes channels, schedules and escalation policies, in the order of their references.

    Raises:
        Refused with the faulty entry.
    """
    write = _Write(tx, together, place, applied.principal, terms)
    await _write(tx, wanted.channels, list(wanted.channels.acts), write.channel, write, applied)
    await _write(tx, wanted.schedules, list(wanted.schedules.acts), write.schedule, write, applied)
    by_id = {str(own): uid for uid, own in place.policies.uids.items()}
    named = {
        uid: [
            by_id[own]
            for step in wanted.policies.drafts[uid].steps
            for kind, own in step.targets
            if kind is TargetKind.POLICY and own in by_id
        ]
        for uid in wanted.policies.acts
    }
    order, circle = in_order(named)
    assert circle is None, "the nesting was checked"
    await _write(tx, wanted.policies, order, write.policy, write, applied)


async def _write(
    tx: Tx,
    section: ComparedSection[R, D],
    order: Sequence[str],
    put: Callable[[str, D, R | None], Any],
    write: "_Write",
    applied: ApplySource,
) -> None:
    kind, is_plan = SECTIONS[section.section][0], write.together.is_plan
    for uid in order:
        row = section.standing.get(uid)
        with under(section.section if uid == ROUTES_UID else f"{section.section}.{uid}"):
            # A plan writes no existing row, so that no other transaction waits for it.
            if is_plan and row is not None:
                async with tx.undone():
                    await put(uid, section.drafts[uid], row)
            else:
                await put(uid, section.drafts[uid], row)
        applied.progress.wrote(section.acts[uid], kind, uid)
    for uid in section.orphans:
        applied.progress.wrote(BundleAction.ORPHAN, kind, uid)
    if is_plan:
        return
    own = {uid: write.id_of(section.section, uid) for uid in section.drafts}
    orphans = {uid: row.uid for uid, row in section.orphans.items()}
    marks = marks_of(own, section.standing, orphans, applied, tx.now)
    await put_marks(tx, kind, write.place.home.org, marks)


@dataclass(frozen=True, slots=True)
class _Write:
    tx: Tx
    together: MonitorWriteBatch
    place: BundleContext
    principal: Principal
    terms: EntryContext

    def id_of(self, section: str, uid: str) -> UUID:
        known = {
            "channels": self.place.channels,
            "schedules": self.place.schedules,
            "escalation_policies": self.place.policies,
        }
        return known[section].uids[uid] if section in known else self.place.home.uid

    async def channel(self, uid: str, draft: ChannelDraft, row: ChannelRow | None) -> None:
        home, keyring = self.place.home, self.terms.keyring
        if row is None:
            own = self.place.channels.uids[uid]
            await create_held_channel(self.tx, self.principal, home, own, draft, keyring)
            return
        before = channel_in_words(row)["config"]
        # An edit keeps the settings that it does not name.
        config = {**dict.fromkeys(before, ""), **draft.config}
        await edit_channel(
            self.tx,
            self.principal,
            row.uid,
            draft.name,
            config,
            draft.enabled,
            keyring,
            draft.takes_tickets,
        )

    async def schedule(self, uid: str, wanted: BundledSchedule, row: ScheduleRow | None) -> None:
        if row is None:
            home, own = self.place.home, self.place.schedules.uids[uid]
            row = await create_held_schedule(self.tx, self.principal, home, own, wanted.draft)
        else:
            await replace_schedule(self.tx, self.principal, row.uid, wanted.draft)
        for one in await _missing_overrides(self.tx, row, wanted):
            span = (one.starts_at, one.ends_at)
            with under("overrides"):
                await create_override(self.tx, self.principal, row.uid, str(one.channel), *span)

    async def policy(self, uid: str, draft: PolicyDraft, row: EscalationPolicyRow | None) -> None:
        if row is None:
            home, own = self.place.home, self.place.policies.uids[uid]
            await create_held_policy(self.tx, self.principal, home, own, draft)
        elif await replace_held_policy(self.tx, self.principal, row, draft):
            self.together.policy(row)

    async def routes(self, _: str, drafts: RouteDrafts, __: RouteListRow | None) -> None:
        # A plan has no changed services, whose policies the write would check.
        if self.together.is_plan:
            return
        rules, default = drafts
        await put_held_routes(self.tx, self.principal, self.place.home, rules, default)


def compare_routes(
    bundle: Bundle, place: BundleContext, applied: ApplySource
) -> ComparedSection[RouteListRow, RouteDrafts]:
    """Compares the alert routes.

    Raises:
        Refused with the faulty route.
    """
    words = service_words(place)
    by_uid = {row.uid: words[row.id] for row in place.services} | {
        own: uid for uid, own in place.coming_services.items()
    }
    ids = {str(row.uid): row.uid for row in place.services}
    ids.update({row.slug: row.uid for row in place.services})
    ids.update({uid: row.uid for uid, row in place.my_services.items()})
    ids.update(place.coming_services)
    drafts = {uid: wanted_routes(entry, ids, place) for uid, entry in bundle.routes.items()}
    for rules, default in drafts.values():
        _expect_routable(bundle, place, rules, default)
    found = ComparedSection("routes", drafts, place.my_oncall.routes, {})
    _compare(
        found,
        bundle,
        place.oncall.route_lists,
        applied,
        {
            row.id: routes_in_words(place.oncall.routes, words, place)
            for row in place.my_oncall.routes.values()
        },
        {
            uid: route_drafts_in_words(rules, default, by_uid, place)
            for uid, (rules, default) in drafts.items()
        },
        ROUTES_DEFAULTS,
    )
    return found


def _expect_routable(
    bundle: Bundle, place: BundleContext, rules: Sequence[RouteDraft], default: RouteDraft | None
) -> None:
    """Checks the targets with the services that the project will have.

    Raises:
        Refused invalid with the route.
    """
    wanted = {
        own: bool(bundle.services[uid].escalation_policy)
        for uid, own in place.coming_services.items()
    }
    wanted.update({row.uid: row.escalation_policy is not None for row in place.services})
    for uid, row in place.my_services.items():
        wanted[row.uid] = bool(bundle.services[uid].escalation_policy)
    every = [(f"routes.rules[{at}]", one) for at, one in enumerate(rules)]
    every += [] if default is None else [("routes.default", default)]
    for path, one in every:
        if (one.service is None) == (one.policy is None):
            raise Refused("invalid", path, "must have one of service and escalation_policy")
        if one.service is not None and not wanted[one.service]:
            rule = "names a service without an escalation policy, which pages nobody"
            raise Refused("invalid", f"{path}.service", rule)


async def write_routes(
    tx: Tx,
    together: MonitorWriteBatch,
    place: BundleContext,
    wanted: ComparedSection[RouteListRow, RouteDrafts],
    applied: ApplySource,
    terms: EntryContext,
) -> None:
    """Writes the alert routes, after the services.

    Raises:
        Refused with the faulty route.
    """
    write = _Write(tx, together, place, applied.principal, terms)
    if not together.is_plan and wanted.drafts:
        await ensure_route_marks(tx, place.home.org, place.home.id)
    await _write(tx, wanted, list(wanted.acts), write.routes, write, applied)
