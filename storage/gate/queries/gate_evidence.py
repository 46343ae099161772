"""Evidence of a gate decision, read for one service in one snapshot.

All windows with an objective are read, even if the policy uses one. A replay can therefore apply
another policy to the same facts.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec.structs import replace

from ...alerting.queries.alerting_state import SignalState, select_alerting_state
from ...core.instant import Instant
from ...engine.pools import Tx
from ...objectives.queries.burn_rules import select_rules_of_services
from ...objectives.queries.service_targets import select_service_targets
from ...objectives.rows import BurnRuleRow, ServiceTargetRow
from ...objectives.rules import BurnRule
from ...services.queries.service_reports import select_windows_of
from ...services.queries.service_revisions import select_revisions
from ...services.rows import ServiceRow
from ...services.rules.epoch import governs
from ...services.rules.service_report import WINDOWS, ReportWindow, spelt
from ..rules.gate_evidence import (
    FactRevisions,
    GateFacts,
    GoverningRevision,
    RuleFacts,
    SignalFacts,
    WindowFacts,
)

# Open incidents of one service: at most one automatic incident, and manual ones.
INCIDENTS_MOST: Final = 20
_OPEN_INCIDENTS = """
select uid from incidents
where org = %(org)s and service = %(service)s and status <> 'resolved'
order by started_at, id limit %(most)s
"""
# Creation of the oldest pending repair per window, of members and of the children of composite
# members.
_REPAIRS = """
with recursive part(monitor) as (
  select distinct m from service_revisions r cross join unnest(r.sli) as m
  where r.org = %(org)s and r.service = %(service)s
  union
  select child from part p join composite_terms c on c.org = %(org)s and c.monitor = p.monitor
    cross join unnest(c.children) as child)
select i."window", min(r.created_at)
from json_to_recordset(%(items)s::json) as i("window" text, from_at bigint, until_at bigint)
  cross join part p join repairs r on r.org = %(org)s and r.monitor = p.monitor
where r.to_at > at(i.from_at) and r.from_at < at(i.until_at)
group by i."window"
"""


async def select_facts(tx: Tx, service: ServiceRow, at: Instant) -> GateFacts:
    key = service.key
    targets = (await select_service_targets(tx, [key]))[key]
    names = [window for window in WINDOWS if window in targets]
    windows = await select_windows_of(tx, service, names) if names else {}
    rules = (await select_rules_of_services(tx, [key])).get(key, {})
    repairs = await _select_repairs(tx, service, windows)
    _, revision = governs((await select_revisions(tx, [key]))[key], tx.now)
    said = await select_alerting_state(tx, key, tx.now)
    return GateFacts(
        at=at,
        governing=None if revision is None else GoverningRevision(revision.uid, revision.revision),
        sealed_through=_sealed_through(service),
        windows=[
            _window(windows[name], targets[name], rules.get(name, ()), repairs.get(name))
            for name in names
        ],
        fact_revisions=_fact_revisions([windows[name] for name in names]),
        seen=said.seen,
        live=_signal(said.live),
        burn=_signal(said.burn),
        open_incidents=await _select_open_incidents(tx, service),
    )


async def _select_open_incidents(tx: Tx, service: ServiceRow) -> list[UUID]:
    rows = await tx.rows(_OPEN_INCIDENTS, org=service.org, service=service.id, most=INCIDENTS_MOST)
    return [row[0] for row in rows]


async def _select_repairs(
    tx: Tx, service: ServiceRow, windows: Mapping[str, ReportWindow]
) -> dict[str, Instant]:
    items: list[dict[str, Any]] = [
        {"window": name, "from_at": window.from_, "until_at": window.to}
        for name, window in windows.items()
    ]
    if not items:
        return {}
    text = msgspec.json.encode(items).decode()
    return dict(await tx.rows(_REPAIRS, org=service.org, service=service.id, items=text))


def _sealed_through(service: ServiceRow) -> Instant | None:
    start, sealed = service.materialization_start, service.sealed_through
    return sealed if start is not None and sealed is not None and sealed > start else None


def _window(
    window: ReportWindow,
    target: ServiceTargetRow,
    rules: Sequence[BurnRuleRow],
    repair_since: Instant | None,
) -> WindowFacts:
    split = window.durations.split
    return WindowFacts(
        window=window.window,
        target=target.uid,
        objective=target.objective,
        objective_updated_at=target.updated_at,
        from_at=window.from_,
        to_at=window.to,
        good_us=split.good_us,
        bad_us=split.bad_us,
        unknown_us=split.unknown_us,
        excluded_us=split.excluded_us,
        withheld=window.aggregate_withheld,
        repair_since=repair_since,
        burn_enabled=target.burn_enabled,
        rules=[_rule(rule, target) for rule in rules],
    )


def _rule(row: BurnRuleRow, target: ServiceTargetRow) -> RuleFacts:
    if row.evaluated_at is not None and row.evaluated_at < target.updated_at:
        # An evaluation of the former objective does not apply to the new one.
        row = replace(row, firing=False, last_verdict=None, evaluated_at=None, lease_until=None)
    return RuleFacts(
        key=key_of(row.window, row.rule),
        severity=row.rule.severity,
        firing=row.firing,
        last_verdict=row.last_verdict,
        evaluated_at=row.evaluated_at,
        lease_until=row.lease_until,
    )


def key_of(window: str, rule: BurnRule) -> str:
    """Returns the key of a rule, e.g. `30d page 1h/5m 14.4`: window, ranges and threshold."""
    ranges = f"{spelt(rule.long_us)}/{spelt(rule.short_us)}"
    return f"{window} {rule.severity} {ranges} {float(rule.threshold):g}"


def _signal(state: SignalState) -> SignalFacts:
    return SignalFacts(
        armed=state.armed,
        reason=state.reason,
        evaluated_at=state.evaluated_at,
        lease_until=state.lease_until,
    )


def _fact_revisions(windows: Sequence[ReportWindow]) -> FactRevisions:
    """Returns the epochs within any of the windows, by number, with a digest."""
    found: dict[UUID, int] = {}
    digest = sha256()
    for window in windows:
        for segment in window.segments:
            found[segment.epoch_uid] = segment.epoch
            said = (window.window, segment.epoch_uid, segment.minutes, segment.durations)
            digest.update(repr(said).encode())
    ids = sorted(found, key=lambda uid: found[uid])
    first, last = (ids[0], ids[-1]) if ids else (None, None)
    return FactRevisions(len(ids), first, last, digest.hexdigest())
