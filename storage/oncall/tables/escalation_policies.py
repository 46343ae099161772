"""Escalation policies of projects. Targets and referenced policies cannot be deleted.

Steps and places are numbered from 1. A transaction that refers to a policy takes a shared lock on
it. An update or deletion takes an exclusive lock, so that no referenced policy is deleted.
"""

from collections.abc import Collection, Sequence
from itertools import groupby
from uuid import UUID

from ...core.instant import SECOND
from ...engine.pools import LockRank, Tx
from ..rows import EscalationPolicyRow
from ..rules.escalation import (
    EscalationPolicy,
    EscalationStep,
    EscalationTarget,
    TargetKind,
    expanded,
    nested_in,
)

# A project has fewer policies.
POLICIES_READ_MOST = 200
_COLUMNS = """
e.org, e.id, e.uid, e.project, p.uid, e.name, e.repeat_last, e.after_seconds, e.created_at,
e.updated_at, e.ack_timeout_seconds, e.managed_by, e.bundle_uid, e.bundle_path, e.orphaned_at
"""
_FROM = "from escalation_policies e join projects p on p.org = e.org and p.id = e.project"
_BY_UID = f"select {_COLUMNS} {_FROM} where e.uid = %(uid)s"
_LOCK = f"{_BY_UID} for update of e"
_COUNT = "select count(*) from escalation_policies where org = %(org)s and project = %(project)s"
_LADDERS = """
select id, repeat_last, after_seconds, ack_timeout_seconds from escalation_policies
where org = %(org)s and id = any(%(ids)s::int[])
"""
_LADDER_TARGETS = """
select policy, step, channel, schedule, nested from escalation_targets
where org = %(org)s and policy = any(%(ids)s::int[]) order by policy, step, place
"""
_OF_PROJECT_IDS = """
select id from escalation_policies where org = %(org)s and project = %(project)s
"""
_INSERT = """
insert into escalation_policies
  (org, uid, project, name, repeat_last, after_seconds, ack_timeout_seconds, created_at, updated_at)
values (%(org)s, %(uid)s, %(project)s, %(name)s, %(repeat_last)s, %(after_seconds)s::int[],
  %(ack_timeout)s, at(%(now)s), at(%(now)s))
returning id
"""
_UPDATE = """
update escalation_policies set name = %(name)s, repeat_last = %(repeat_last)s,
  after_seconds = %(after_seconds)s::int[], ack_timeout_seconds = %(ack_timeout)s,
  updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from escalation_policies where org = %(org)s and id = %(id)s"
_DROP_TARGETS = "delete from escalation_targets where org = %(org)s and policy = %(policy)s"
_ADD_TARGETS = """
insert into escalation_targets (org, policy, step, place, channel, schedule, nested)
select %(org)s, %(policy)s, t.step, t.place, t.channel, t.schedule, t.nested
from unnest(%(steps)s::int[], %(places)s::int[], %(channels)s::int[], %(schedules)s::int[],
  %(nested)s::int[]) as t (step, place, channel, schedule, nested)
"""
_HOLD = """
select id from escalation_policies
where uid = %(uid)s and org = %(org)s and project = %(project)s for key share
"""
_SET_DEFAULT = """
update projects set default_policy = %(policy)s, updated_at = at(%(now)s)
where org = %(org)s and id = %(project)s
"""
# The escalation of each incident then takes the steps that are due by the new policy.
_LOOK_AGAIN = """
with recursive above as (
  select %(id)s::int as id
  union
  select t.policy from above a join escalation_targets t on t.org = %(org)s and t.nested = a.id)
update incidents set escalate_at = at(%(now)s)
where org = %(org)s and escalation_policy in (select id from above) and status <> 'resolved'
  and (acknowledged_at is null or ack_expired_at is not null) and merged_into is null
"""


async def lock_policy(tx: Tx, uid: UUID) -> EscalationPolicyRow | None:
    tx.lock_rank(LockRank.POLICY, "an escalation policy to change")
    return await tx.one(EscalationPolicyRow, _LOCK, uid=uid)


async def lock_shared_policy(tx: Tx, org: int, project: int, uid: UUID) -> int | None:
    """Locks the project's policy, shared, and returns its id."""
    tx.lock_rank(LockRank.POLICY, "a referenced escalation policy")
    key: int | None = await tx.value(_HOLD, org=org, project=project, uid=uid)
    return key


async def count_policies(tx: Tx, org: int, project: int) -> int:
    count: int = await tx.value(_COUNT, org=org, project=project)
    return count


async def select_ladder(tx: Tx, org: int, policy_id: int) -> EscalationPolicy | None:
    """Returns the policy for the rule, None if it is deleted."""
    return (await select_ladders(tx, org, {policy_id})).get(policy_id)


async def select_ladders(
    tx: Tx, org: int, policies: Collection[int]
) -> dict[int, EscalationPolicy]:
    """Returns the policies that exist, with their targets as they are written."""
    ids = sorted(policies)
    rows = await tx.rows(_LADDERS, org=org, ids=ids)
    found = await tx.rows(_LADDER_TARGETS, org=org, ids=ids)
    targets = {
        place: tuple(_target(*keys) for _, _, *keys in group)
        for place, group in groupby(found, key=lambda target: (target[0], target[1]))
    }
    return {
        key: EscalationPolicy(
            tuple(
                EscalationStep(after * SECOND, targets.get((key, number), ()))
                for number, after in enumerate(after_seconds, 1)
            ),
            repeat_last,
            ack_timeout * SECOND,
        )
        for key, repeat_last, after_seconds, ack_timeout in rows
    }


async def select_expanded_ladder(tx: Tx, org: int, policy_id: int) -> EscalationPolicy | None:
    """Returns the policy with the steps of the policies that it names; None if it is deleted."""
    found: dict[int, EscalationPolicy] = {}
    wanted = {policy_id}
    while wanted and len(found) <= POLICIES_READ_MOST:
        read = await select_ladders(tx, org, wanted)
        found |= read
        wanted = {key for one in read.values() for key in nested_in(one)} - set(found)
    return expanded(found, policy_id) if policy_id in found else None


async def select_ladders_of(tx: Tx, org: int, project: int) -> dict[int, EscalationPolicy]:
    """Returns all policies of a project."""
    keys = [row[0] for row in await tx.rows(_OF_PROJECT_IDS, org=org, project=project)]
    return await select_ladders(tx, org, keys)


async def insert_policy(
    tx: Tx, org: int, project: int, uid: UUID, name: str, ladder: EscalationPolicy
) -> None:
    key = await tx.value(
        _INSERT,
        org=org,
        project=project,
        uid=uid,
        name=name,
        repeat_last=ladder.repeat_last,
        after_seconds=_after_seconds(ladder),
        ack_timeout=ladder.ack_timeout_us // SECOND,
        now=tx.now,
    )
    await _add_targets(tx, org, key, ladder.steps)


async def update_policy(
    tx: Tx, row: EscalationPolicyRow, name: str, ladder: EscalationPolicy
) -> None:
    count = await tx.execute(
        _UPDATE,
        org=row.org,
        id=row.id,
        name=name,
        repeat_last=ladder.repeat_last,
        after_seconds=_after_seconds(ladder),
        ack_timeout=ladder.ack_timeout_us // SECOND,
        now=tx.now,
    )
    assert count == 1, "the locked policy is missing"
    await tx.execute(_DROP_TARGETS, org=row.org, policy=row.id)
    await _add_targets(tx, row.org, row.id, ladder.steps)


async def delete_policy(tx: Tx, row: EscalationPolicyRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)


async def set_default_policy(tx: Tx, org: int, project: int, policy: int | None) -> None:
    """Sets the default policy of a locked project, or removes it."""
    await tx.execute(_SET_DEFAULT, org=org, project=project, policy=policy, now=tx.now)


async def look_at_incidents_again(tx: Tx, row: EscalationPolicyRow) -> int:
    """Makes open, unacknowledged incidents of a changed policy due, even after its last step."""
    tx.lock_rank(LockRank.INCIDENT, "incidents of a changed escalation policy")
    return await tx.execute(_LOOK_AGAIN, org=row.org, id=row.id, now=tx.now)


async def _add_targets(tx: Tx, org: int, policy: int, steps: Sequence[EscalationStep]) -> None:
    flat = [
        (number, place, target)
        for number, step in enumerate(steps, 1)
        for place, target in enumerate(step.targets, 1)
    ]
    await tx.execute(
        _ADD_TARGETS,
        org=org,
        policy=policy,
        steps=[number for number, _, _ in flat],
        places=[place for _, place, _ in flat],
        channels=[_key_of(target, TargetKind.CHANNEL) for _, _, target in flat],
        schedules=[_key_of(target, TargetKind.SCHEDULE) for _, _, target in flat],
        nested=[_key_of(target, TargetKind.POLICY) for _, _, target in flat],
    )


def _key_of(target: EscalationTarget, kind: TargetKind) -> int | None:
    return target.key if target.kind is kind else None


def _after_seconds(ladder: EscalationPolicy) -> list[int]:
    return [step.after_us // SECOND for step in ladder.steps]


def _target(channel: int | None, schedule: int | None, nested: int | None) -> EscalationTarget:
    if nested is not None:
        return EscalationTarget(TargetKind.POLICY, nested)
    if channel is not None:
        return EscalationTarget(TargetKind.CHANNEL, channel)
    assert schedule is not None, "a target has a channel, a schedule or a policy"
    return EscalationTarget(TargetKind.SCHEDULE, schedule)
