"""Evaluation of the burn rules of services and monitors, with their notifications.

Invariant: a rule that cannot be evaluated keeps its state and is `unevaluated`. Invariant: a
monitor's rules notify only if no service that owns its paging evaluates its own budget.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ...alerting.queries.paging_owners import select_owners, select_owning
from ...alerting.rules.alert_episode import EVERY_US
from ...alerting.rules.paging_delegation import Delegated, SignalReason, decide_burn_paging
from ...alerting.tables import service_alerting
from ...core.availability import burn_rate
from ...core.instant import SECOND, Instant
from ...core.key import MonitorKey, ServiceKey
from ...core.sli import Split
from ...engine.pools import Tx
from ...figures.queries.availability import select_watermarks
from ...figures.queries.monitor_time import measure
from ...incidents.rules.incident import IncidentImpact
from ...monitors.rows import MonitorRow
from ...monitors.tables.monitors import select_monitors_by_key
from ...mutes.queries import mutes_of_monitors, mutes_of_services
from ...notifications.queries.channels import select_channels_of_monitor
from ...notifications.queries.global_silence import global_silence_in_force
from ...notifications.queries.ticket_destinations import select_ticket_destinations
from ...services.queries.service_reports import select_burns
from ...services.queries.service_timeouts import select_longest_timeouts
from ...services.rows import ServiceRow
from ...services.rules.support_hours import opens_at
from ...services.tables.services import select_services
from ..queries import burn_rules as burn_rules_queries
from ..queries.monitor_targets import select_monitor_targets
from ..queries.service_targets import select_service_targets
from ..rows import BurnRuleRow
from ..rules import BurnNotification, BurnState, decide_burn, is_stale
from ..tables import burn_rules
from ..tables.burn_rules import RuleSeen
from .notify_burn import BurnSubject, follow_rule, of_monitor, of_service

# An evaluation by another process since this time is sufficient.
ENOUGH_US = EVERY_US - 5 * SECOND

Rules = Mapping[str, Sequence[BurnRuleRow]]


@dataclass(slots=True)
class Burned:
    """Number of evaluated rules, sent notifications, and reasons without a notification."""

    rules: int = 0
    told: Counter[BurnNotification] = field(default_factory=Counter)
    withheld: Counter[str] = field(default_factory=Counter)


async def evaluate_service_burns(tx: Tx, keys: Sequence[ServiceKey]) -> Burned:
    """Evaluates the rules of services of one organization. Skips locked services."""
    done = Burned()
    held = await service_alerting.lock_alertings(tx, keys, skip_locked=True)
    alertings = {key: row for key, row in held.items() if _is_due(row.burn_evaluated_at, tx.now)}
    if not alertings:
        return done
    services = await select_services(tx, sorted(alertings))
    wanted = await _watched(tx, sorted(alertings))
    burns = await select_burns(tx, [_asked(services[k], o, rules) for k, o, rules in wanted])
    timeouts = await select_longest_timeouts(tx, sorted({key for key, _, _ in wanted}), tx.now)
    reasons: dict[ServiceKey, str | None] = dict.fromkeys(alertings)
    is_silenced = await global_silence_in_force(tx) is not None
    mutes = await mutes_of_services(tx, sorted(alertings))
    seen: list[RuleSeen] = []
    for key, _, rules in wanted:
        stale = is_stale(services[key].sealed_through, timeouts.get(key, 0) * SECOND, tx.now)
        renotify_us = alertings[key].renotify_seconds * SECOND
        silenced = is_silenced or key in mutes
        closed = await _is_closed(tx, services[key])
        budget = of_service(services[key], renotify_us, silenced=silenced, closed=closed)
        for row in rules:
            long, short = burns[key].pop(0).rate, burns[key].pop(0).rate
            verdict = BurnState.UNEVALUATED if stale else decide_burn(row.rule, long, short)
            if verdict is BurnState.UNEVALUATED:
                reasons[key] = SignalReason.RULE_UNEVALUATED.value
            seen.append(await _follow(tx, budget, row, verdict, done))
    await burn_rules.write_rules(tx, seen)
    await service_alerting.write_burn_seen(tx, reasons)
    return done


async def _is_closed(tx: Tx, row: ServiceRow) -> bool:
    """Returns whether tickets wait for the support hours of the service.

    A ticket destination receives them at all hours.
    """
    if opens_at(row.support_zone, row.support_hours, tx.now) is None:
        return False
    impact = IncidentImpact.MINOR
    return not await select_ticket_destinations(tx, row.org, row.project, impact)


async def evaluate_monitor_burns(
    tx: Tx, keys: Sequence[MonitorKey], *, is_steady: bool = True
) -> Burned:
    """Evaluates the rules of monitors of one organization. Skips locked monitors."""
    done = Burned()
    before = Instant(tx.now - ENOUGH_US)
    found = await burn_rules.lock_rules_of_monitors(tx, sorted(keys), before)
    if not found:
        return done
    rows = await select_monitors_by_key(tx, found)
    types = {key: row.type for key, row in rows.items()}
    marks = await select_watermarks(tx, types)
    targets = await select_monitor_targets(tx, found)
    rules = await burn_rules_queries.select_rules_of_monitors(tx, found)
    quiet = await _quiet(tx, found, is_steady=is_steady)
    is_silenced = await global_silence_in_force(tx) is not None
    mutes = await mutes_of_monitors(tx, found)
    seen: list[RuleSeen] = []
    for key, row in sorted(rows.items()):
        silenced = is_silenced or key in mutes
        budget = await _of_monitor(tx, row, quiet=key in quiet, silenced=silenced)
        for window, own in rules.get(key, {}).items():
            target = targets.get(key, {}).get(window)
            if target is None or not target.burn_enabled:
                continue
            rates = await _rates(tx, row, target.objective, own, marks.get(key))
            for rule, (long, short) in zip(own, rates, strict=True):
                seen.append(
                    await _follow(tx, budget, rule, decide_burn(rule.rule, long, short), done)
                )
    await burn_rules.write_rules(tx, seen)
    return done


def _is_due(evaluated_at: Instant | None, now: Instant) -> bool:
    return evaluated_at is None or now - evaluated_at >= ENOUGH_US


async def _follow(
    tx: Tx, budget: BurnSubject, row: BurnRuleRow, verdict: BurnState, done: Burned
) -> RuleSeen:
    looked = await follow_rule(tx, budget, row, verdict)
    done.rules += 1
    if looked.word is not None:
        done.told[looked.word] += 1
    if verdict is BurnState.UNEVALUATED:
        done.withheld[SignalReason.RULE_UNEVALUATED.value] += 1
    elif looked.seen.firing and looked.seen.told is None:
        done.withheld[_why_untold(budget)] += 1
    return looked.seen


def _why_untold(budget: BurnSubject) -> str:
    if budget.silenced:
        return "silenced"
    return "delegated" if budget.quiet else "unreached"


async def _watched(
    tx: Tx, keys: Sequence[ServiceKey]
) -> list[tuple[ServiceKey, int, Sequence[BurnRuleRow]]]:
    """Returns (service, objective, rules) of the targets with burn alerts enabled."""
    targets = await select_service_targets(tx, keys)
    rules = await burn_rules_queries.select_rules_of_services(tx, keys)
    return [
        (key, target.objective, rules[key][window])
        for key in keys
        for window, target in sorted(targets[key].items())
        if target.burn_enabled and window in rules.get(key, {})
    ]


def _asked(
    service: ServiceRow, objective: int, rules: Sequence[BurnRuleRow]
) -> tuple[ServiceRow, int, list[int]]:
    return service, objective, [us for row in rules for us in (row.rule.long_us, row.rule.short_us)]


async def _of_monitor(tx: Tx, row: MonitorRow, *, quiet: bool, silenced: bool) -> BurnSubject:
    channels = await select_channels_of_monitor(tx, row.org, row.id)
    own = [channel.id for channel in channels]
    return of_monitor(row, own, quiet=quiet, silenced=silenced)


async def _quiet(tx: Tx, monitors: Sequence[MonitorKey], *, is_steady: bool) -> set[MonitorKey]:
    """Returns the monitors whose paging a service with its own burn evaluation owns."""
    of = await select_owning(tx, monitors, tx.now)
    services = {service for found in of.values() for service in found}
    if not services:
        return set()
    alertings = await service_alerting.select_alertings(tx, services)
    owners = await select_owners(tx, alertings, tx.now)
    return {
        monitor
        for monitor, found in of.items()
        if isinstance(
            decide_burn_paging(
                [owners[s] for s in found if s in owners], tx.now, is_steady=is_steady
            ),
            Delegated,
        )
    }


async def _rates(
    tx: Tx, row: MonitorRow, objective: int, rules: Sequence[BurnRuleRow], mark: Instant | None
) -> list[tuple[Fraction | None, Fraction | None]]:
    """Returns the burn rates of each rule over its long and short window.

    Both windows end at the watermark. The rates are None if it is stale.
    """
    if mark is None or is_stale(mark, row.timeout_seconds * SECOND, tx.now):
        return [(None, None) for _ in rules]
    lengths = {us for rule in rules for us in (rule.rule.long_us, rule.rule.short_us)}
    edges = [Instant(mark - us) for us in sorted(lengths, reverse=True)] + [mark]
    key = row.key
    buckets = (await measure(tx, {key: row.type}, edges)).get(key, [])
    rates: dict[int, Fraction | None] = {}
    total = Split(0, 0, 0, 0)
    for bucket, us in zip(reversed(buckets), sorted(lengths), strict=False):
        total = total + bucket.split
        rates[us] = burn_rate(total, objective)
    return [(rates.get(r.rule.long_us), rates.get(r.rule.short_us)) for r in rules]
