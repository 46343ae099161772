"""Burn rules of targets, in order, with the result of the last evaluation.

A rule that is saved unchanged keeps its row, with its firing state and notifications. A changed
rule is a new rule with a new row. A change of the runbook alone keeps the row.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from ...core.instant import SECOND, Instant
from ...core.key import Key, MonitorKey, key_arrays
from ...engine.pools import LockRank, Tx
from ..rows import BurnRuleRow
from ..rules import BurnRule, BurnSeverity, BurnState

_COLUMNS = """
b.org, b.id, b.uid, b.service, b.monitor, b."window", b.place, b.long_seconds, b.short_seconds,
b.threshold, b.severity, b.firing, b.firing_since, b.last_verdict, b.evaluated_at, b.lease_until,
b.notified_at, b.runbook_url
"""
_OF_SERVICES = f"""
select {_COLUMNS} from burn_rules b
  join unnest(%(orgs)s::int[], %(owners)s::int[]) as k(org, owner)
    on k.org = b.org and k.owner = b.service
order by b.org, b.service, b."window", b.place
"""
_OF_MONITORS = f"""
select {_COLUMNS} from burn_rules b
  join unnest(%(orgs)s::int[], %(owners)s::int[]) as k(org, owner)
    on k.org = b.org and k.owner = b.monitor
order by b.org, b.monitor, b."window", b.place
"""
_DROP = "delete from burn_rules where org = %(org)s and id = any(%(ids)s::int[])"
# Move them to temporary places first, because places are unique within a statement too.
_SET_ASIDE = """
update burn_rules set place = -1 - place where org = %(org)s and id = any(%(ids)s::int[])
"""
_PLACE = """
update burn_rules b set place = k.place, runbook_url = k.url
from unnest(%(ids)s::int[], %(places)s::int[], %(urls)s::text[]) as k(id, place, url)
where b.org = %(org)s and b.id = k.id
"""
_INSERT = """
insert into burn_rules (org, uid, service, monitor, "window", place, long_seconds, short_seconds,
  threshold, severity, runbook_url)
values (%(org)s, %(uid)s, %(service)s, %(monitor)s, %(window)s, %(place)s, %(long)s, %(short)s,
  %(threshold)s, %(severity)s, %(runbook_url)s)
"""
_WRITE = """
update burn_rules b set firing = i.firing, firing_since = at(i.since), last_verdict = i.verdict,
  evaluated_at = at(%(now)s), lease_until = clock_timestamp() + %(lease)s * interval '1 second',
  notified_at = at(i.told)
from json_to_recordset(%(items)s::json)
  as i(org int, id int, firing boolean, since bigint, verdict text, told bigint)
where b.org = i.org and b.id = i.id
"""
# Monitors with burn alerts enabled and a rule that is due for evaluation.
_DUE_MONITORS = """
select distinct b.org, b.monitor from burn_rules b
  join monitor_targets t on t.org = b.org and t.monitor = b.monitor and t."window" = b."window"
where b.monitor is not null and t.burn_enabled
  and coalesce(b.evaluated_at <= at(%(before)s), true)
  -- Nothing is sent about what a deletion of its project is about to delete.
  and not exists (select from monitors m join projects p on p.org = m.org and p.id = m.project
    where m.org = b.org and m.id = b.monitor and p.deleting_since is not null)
order by b.org, b.monitor limit %(most)s
"""
# The lock on the first rule of a monitor serializes evaluations of its budgets.
_LOCK_OF_MONITORS = """
select k.org, k.monitor from unnest(%(orgs)s::int[], %(monitors)s::int[]) as k(org, monitor)
  cross join lateral (select b.id from burn_rules b
    where b.org = k.org and b.monitor = k.monitor
      and coalesce(b.evaluated_at <= at(%(before)s), true)
    order by b.id limit 1 for no key update skip locked) h
order by k.org, k.monitor
"""
# The evaluator has locked the first of these rules, or the alerting state of their service.
_LOCK_OF = """
select id from burn_rules where org = %(org)s
  and (service = %(service)s or monitor = %(monitor)s)
order by id for update
"""
_FORGET = """
update burn_rules set firing = false, firing_since = null, notified_at = null
where org = %(org)s and id = any(%(ids)s::int[])
"""
# A successful evaluation renews the lease of the rule for this time.
LEASE_SECONDS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnTarget:
    """Owner of rules: the target of a service, or of a monitor, over a window."""

    org: int
    window: str
    service: int | None = None
    monitor: int | None = None

    @property
    def owner(self) -> Key:
        owner = self.monitor if self.service is None else self.service
        assert owner is not None, "a target has one owner"
        return self.org, owner


class RuleSeen(msgspec.Struct, frozen=True):
    """Result of an evaluation, to be written."""

    org: int
    id: int
    firing: bool
    since: Instant | None
    verdict: str
    told: Instant | None


async def write_rules(tx: Tx, seen: Sequence[RuleSeen]) -> None:
    if seen:
        items = msgspec.json.encode(seen).decode()
        await tx.execute(_WRITE, items=items, lease=LEASE_SECONDS, now=tx.now)


async def select_due_monitors(tx: Tx, before: Instant, most: int) -> list[MonitorKey]:
    """Returns monitors with a rule that was not evaluated after `before`."""
    rows = await tx.rows(_DUE_MONITORS, before=before, most=most)
    return [MonitorKey((org, monitor)) for org, monitor in rows]


async def lock_rules_of_monitors(
    tx: Tx, monitors: Sequence[MonitorKey], before: Instant
) -> list[MonitorKey]:
    """Locks the first due rule of each monitor and returns the locked monitors.

    Monitors that another transaction has locked, or that were evaluated after `before`, are
    omitted.
    """
    tx.lock_rank(LockRank.STATE, "burn rules of monitors")
    rows = await tx.rows(_LOCK_OF_MONITORS, **key_arrays(monitors, "monitors"), before=before)
    return [MonitorKey((org, monitor)) for org, monitor in rows]


async def lock_notified_rules(
    tx: Tx, org: int, *, service: int | None = None, monitor: int | None = None
) -> list[BurnRuleRow]:
    """Locks and returns the rules of a service or a monitor with a firing notification.

    Locks: for rules of a service the caller must have locked its alerting state, as the evaluator
    does.
    """
    tx.lock_rank(LockRank.STATE, "burn rules with notifications")
    await tx.rows(_LOCK_OF, org=org, service=service, monitor=monitor)
    query, owner = (_OF_MONITORS, monitor) if service is None else (_OF_SERVICES, service)
    assert owner is not None, "the rules have one owner"
    rows = await _select(tx, query, [(org, owner)])
    return [row for row in rows if row.notified_at is not None]


async def clear_notified(tx: Tx, org: int, rows: Sequence[BurnRuleRow]) -> None:
    """Resets the firing state and the notification of rules."""
    await tx.execute(_FORGET, org=org, ids=[row.id for row in rows])


async def replace_rules(tx: Tx, aim: BurnTarget, rules: Sequence[BurnRule]) -> bool:
    """Replaces the rules of a target. Returns whether they changed.

    Locks: the caller must have locked the service or the monitor.
    """
    query = _OF_MONITORS if aim.service is None else _OF_SERVICES
    rows = [row for row in await _select(tx, query, [aim.owner]) if row.window == aim.window]
    if [row.rule for row in rows] == list(rules):
        return False
    spare: dict[BurnRule, list[int]] = defaultdict(list)
    for row in rows:
        spare[row.rule.without_runbook].append(row.id)
    cores = [rule.without_runbook for rule in rules]
    kept = {spare[core].pop(0): place for place, core in enumerate(cores) if spare[core]}
    await tx.execute(_DROP, org=aim.org, ids=[row.id for row in rows if row.id not in kept])
    await tx.execute(_SET_ASIDE, org=aim.org, ids=list(kept))
    urls = [rules[place].runbook_url for place in kept.values()]
    await tx.execute(_PLACE, org=aim.org, ids=list(kept), places=list(kept.values()), urls=urls)
    for place, rule in enumerate(rules):
        if place not in kept.values():
            await _insert(tx, aim, place, rule)
    return True


async def _insert(tx: Tx, aim: BurnTarget, place: int, rule: BurnRule) -> None:
    await tx.execute(
        _INSERT,
        org=aim.org,
        uid=uuid7(),
        service=aim.service,
        monitor=aim.monitor,
        window=aim.window,
        place=place,
        long=rule.long_us // SECOND,
        short=rule.short_us // SECOND,
        threshold=Decimal(rule.threshold.numerator) / rule.threshold.denominator,
        severity=rule.severity.value,
        runbook_url=rule.runbook_url,
    )


async def _select(tx: Tx, query: str, keys: Sequence[Key]) -> list[BurnRuleRow]:
    return await tx.structs(_row, query, **key_arrays(keys, "owners"))


def _row(
    org: int,
    id_: int,
    uid: UUID,
    service: int | None,
    monitor: int | None,
    window: str,
    place: int,
    long_seconds: int,
    short_seconds: int,
    threshold: Decimal,
    severity: str,
    firing: bool,
    firing_since: Instant | None,
    last_verdict: str | None,
    evaluated_at: Instant | None,
    lease_until: Instant | None,
    notified_at: Instant | None,
    runbook_url: str,
) -> BurnRuleRow:
    return BurnRuleRow(
        org=org,
        id=id_,
        uid=uid,
        service=service,
        monitor=monitor,
        window=window,
        place=place,
        rule=BurnRule(
            long_seconds * SECOND,
            short_seconds * SECOND,
            Fraction(threshold),
            BurnSeverity(severity),
            runbook_url,
        ),
        firing=firing,
        firing_since=firing_since,
        last_verdict=None if last_verdict is None else BurnState(last_verdict),
        evaluated_at=evaluated_at,
        lease_until=lease_until,
        notified_at=notified_at,
    )
