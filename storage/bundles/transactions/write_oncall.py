"""Write of a bundle's channels, schedules and escalation policies.

They are written before the monitors that refer to them. An orphan keeps its settings: who refers to
it would otherwise page nobody.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from uuid import UUID

from ...accounts.rules.access import Principal
from ...core.instant import SECOND
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...monitors.transactions.write_batch import MonitorWriteBatch
from ...notifications.rows import ChannelRow
from ...notifications.transactions.edit_channels import (
    CHANNELS_OF_PROJECT_MOST,
    ChannelDraft,
    create_held_channel,
    edit_channel,
)
from ...oncall.queries.escalation_policies import select_targets
from ...oncall.queries.oncall_schedules import select_layers, select_participants
from ...oncall.rows import EscalationPolicyRow, ScheduleRow
from ...oncall.rules.escalation import (
    EscalationPolicy,
    EscalationStep,
    EscalationTarget,
    TargetKind,
    nesting_faults,
)
from ...oncall.tables.escalation_policies import (
    lock_shared_policy,
    select_ladders_of,
    set_default_policy,
)
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
from ..rules.bundle import Bundle
from ..rules.bundle_diff import BundleChange, in_order
from ..rules.bundle_owner import expect_owned
from .bundle_context import ApplySource, BundleContext, EntryContext, under
from .compared_section import ComparedSection, compare_section, write_section
from .oncall_entries import (
    CHANNEL_DEFAULTS,
    POLICY_DEFAULTS,
    SCHEDULE_DEFAULTS,
    BundledSchedule,
    channel_in_words,
    draft_in_words,
    policy_draft_in_words,
    policy_in_words,
    schedule_draft_in_words,
    schedule_in_words,
    wanted_channel,
    wanted_policy,
    wanted_schedule,
)

_LIMITS: Final = {
    "channels": CHANNELS_OF_PROJECT_MOST,
    "schedules": SCHEDULES_OF_PROJECT_MOST,
    "escalation_policies": POLICIES_OF_PROJECT_MOST,
}


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
        uid: wanted_schedule(uid, entry, place, tx.now, is_new=uid not in mine.schedules)
        for uid, entry in bundle.schedules.items()
    }
    policies = {
        uid: wanted_policy(uid, entry, place) for uid, entry in bundle.escalation_policies.items()
    }
    of_schedules = await schedules_in_words(tx, place, mine.schedules.values())
    of_policies = await policies_in_words(tx, place, mine.policies.values())
    found = WantedOnCall(
        ComparedSection("channels", channels, mine.channels, {}),
        ComparedSection("schedules", schedules, mine.schedules, {}),
        ComparedSection("escalation_policies", policies, mine.policies, {}),
    )
    compare_section(
        found.channels,
        bundle,
        rows.channels,
        applied,
        {row.id: channel_in_words(row) for row in mine.channels.values()},
        {uid: draft_in_words(draft) for uid, draft in channels.items()},
        CHANNEL_DEFAULTS,
    )
    compare_section(
        found.schedules,
        bundle,
        rows.schedules,
        applied,
        of_schedules,
        {uid: schedule_draft_in_words(draft, place) for uid, draft in schedules.items()},
        SCHEDULE_DEFAULTS,
    )
    compare_section(
        found.policies,
        bundle,
        rows.policies,
        applied,
        of_policies,
        {
            uid: policy_draft_in_words(
                draft, place, is_default=bundle.escalation_policies[uid].default
            )
            for uid, draft in policies.items()
        },
        POLICY_DEFAULTS,
    )
    _expect_default(bundle, place, applied)
    await _expect_nesting(tx, place, found.policies)
    return found


def _expect_default(bundle: Bundle, place: BundleContext, applied: ApplySource) -> None:
    """Checks that no other owner has the default policy which the bundle replaces.

    Raises:
        Refused bundle_conflict with the entry.
    """
    mine = {row.uid for row in place.my_oncall.policies.values()}
    for uid, entry in bundle.escalation_policies.items():
        for row in place.oncall.policies if entry.default else ():
            if row.uid == place.default_policy and row.uid not in mine:
                path = f"escalation_policies.{uid}"
                expect_owned(path, row, applied, [f"default of {row.name}"])


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
    faults = nesting_faults(ladders)
    for uid in wanted.acts:
        if (fault := faults.get(mine[uid])) is not None:
            raise Refused("invalid", f"escalation_policies.{uid}.steps", fault)
    if (fault := next(iter(faults.values()), None)) is not None:
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
    put = partial(write_section, tx, place.home.org, applied=applied, is_plan=together.is_plan)
    channels, schedules = wanted.channels, wanted.schedules
    await put(channels, list(channels.acts), write.channel, place.channels.uids)
    await put(schedules, list(schedules.acts), write.schedule, place.schedules.uids)
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
    await put(wanted.policies, order, write.policy, place.policies.uids)
    if not together.is_plan:
        await _put_default(tx, place, wanted.policies)


async def _put_default(
    tx: Tx, place: BundleContext, wanted: ComparedSection[EscalationPolicyRow, PolicyDraft]
) -> None:
    """Sets or removes the default policy of the project if an entry changes it."""
    changed = {
        one.uid: bool(field.to)
        for one in wanted.changes
        for field in one.fields
        if field.name == "default" and one.uid in wanted.drafts
    }
    if not changed:
        return
    chosen = [place.policies.uids[uid] for uid, is_default in changed.items() if is_default]
    home, key = place.home, None
    if chosen:
        key = await lock_shared_policy(tx, home.org, home.id, chosen[0])
        assert key is not None, "the policy was just written"
    await set_default_policy(tx, home.org, home.id, key)


@dataclass(frozen=True, slots=True)
class _Write:
    tx: Tx
    together: MonitorWriteBatch
    place: BundleContext
    principal: Principal
    terms: EntryContext

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
            draft.takes_warnings,
        )

    async def schedule(self, uid: str, wanted: BundledSchedule, row: ScheduleRow | None) -> None:
        if row is None:
            home, own = self.place.home, self.place.schedules.uids[uid]
            row = await create_held_schedule(self.tx, self.principal, home, own, wanted.draft)
        else:
            await replace_schedule(self.tx, self.principal, row.uid, wanted.draft)
        for one in wanted.overrides:
            span = (one.starts_at, one.ends_at)
            with under("overrides"):
                await create_override(self.tx, self.principal, row.uid, str(one.channel), *span)

    async def policy(self, uid: str, draft: PolicyDraft, row: EscalationPolicyRow | None) -> None:
        if row is None:
            home, own = self.place.home, self.place.policies.uids[uid]
            await create_held_policy(self.tx, self.principal, home, own, draft)
        elif await replace_held_policy(self.tx, self.principal, row, draft):
            self.together.policy(row)
