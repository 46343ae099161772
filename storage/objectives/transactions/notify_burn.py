"""Notifications of budgets that burn too fast, and of their recovery.

Each firing period of a rule is one thread. It opens no incident. A changed or disabled rule ends
its thread with a notification.
Locks: the caller must have locked the rules.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

from ...core.instant import SECOND, Instant
from ...engine.pools import Tx
from ...incidents.rules.incident import IncidentImpact, clipped_title
from ...incidents.transactions.page_service_route import (
    PagingRoute,
    Stream,
    page_route,
    page_stream,
)
from ...monitors.rows import MonitorRow
from ...notifications.rules.notification import Notification, Topic
from ...notifications.transactions.enqueue_notifications import enqueue_to_notified_channels
from ...services.rows import ServiceRow
from ...services.rules.service_report import spelt
from ..rows import BurnRuleRow
from ..rules import BurnNotification, BurnSeverity, BurnState, fires, word_of
from ..tables.burn_rules import RuleSeen, clear_notified

BURNING_TAIL = ": high error-budget burn rate"
CALM_TAIL = ": error-budget burn rate is normal"
UNWATCHED_TAIL = ": burn rule removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnSubject:
    """Owner of a budget, with its own channels and its paging route.

    `quiet` means that a service notifies instead. `silenced` means that the global silence
    suppresses new notifications. `closed` means that tickets wait for the support hours.
    """

    org: int
    project: int
    name: str
    path: str
    route: PagingRoute
    runbook_url: str = ""
    channels: Collection[int] = ()
    renotify_us: int = 0
    quiet: bool = False
    silenced: bool = False
    closed: bool = False

    def waits(self, severity: BurnSeverity) -> bool:
        """Returns whether a new notification of this severity waits."""
        return self.silenced or (self.closed and severity is BurnSeverity.TICKET)


@dataclass(frozen=True, slots=True)
class RuleEvaluation:
    """Result of an evaluation. `word` is the notification that was sent, if any."""

    seen: RuleSeen
    word: BurnNotification | None


async def follow_rule(
    tx: Tx, of: BurnSubject, row: BurnRuleRow, verdict: BurnState
) -> RuleEvaluation:
    firing = fires(row.firing, verdict)
    since = (row.firing_since or tx.now) if firing else None
    word = word_of(firing, row.notified_at, of.renotify_us, tx.now)
    told: Instant | None = row.notified_at
    if word is BurnNotification.CALM:
        await _notify(tx, of, row, row.firing_since or tx.now, word)
        told = None
    elif word and since is not None and not of.quiet and not of.waits(row.rule.severity):
        told = tx.now if await _notify(tx, of, row, since, word) else told
    else:
        word = None
    seen = RuleSeen(row.org, row.id, firing, since, verdict.value, told)
    return RuleEvaluation(seen, word)


def of_service(
    row: ServiceRow, renotify_us: int = 0, *, silenced: bool = False, closed: bool = False
) -> BurnSubject:
    return BurnSubject(
        org=row.org,
        project=row.project,
        name=row.name,
        path=f"/services/{row.uid}",
        runbook_url=row.runbook_url,
        route=PagingRoute(row.escalation_policy, row.oncall_schedule),
        renotify_us=renotify_us,
        silenced=silenced,
        closed=closed,
    )


def of_monitor(
    row: MonitorRow,
    channels: Collection[int] = (),
    *,
    quiet: bool = False,
    silenced: bool = False,
) -> BurnSubject:
    return BurnSubject(
        org=row.org,
        project=row.project,
        name=row.name,
        path=f"/monitors/{row.uid}",
        runbook_url=row.runbook_url,
        route=PagingRoute(row.escalation_policy, None),
        channels=channels,
        renotify_us=row.renotify_seconds * SECOND,
        quiet=quiet,
        silenced=silenced,
    )


async def notify_unwatched(tx: Tx, of: BurnSubject, rows: Sequence[BurnRuleRow]) -> None:
    """Notifies the channels of firing rules that the rules are no longer evaluated."""
    for row in rows:
        since = row.firing_since or tx.now
        page = _notification(of, row, since, BurnNotification.CALM, UNWATCHED_TAIL)
        await enqueue_to_notified_channels(
            tx, of.org, of.project, row.uid, _thread_of(row.uid, since), Topic.MONITOR, page
        )
    await clear_notified(tx, of.org, rows)


async def _notify(
    tx: Tx, of: BurnSubject, row: BurnRuleRow, since: Instant, word: BurnNotification
) -> bool:
    """Sends a notification. Returns whether at least one channel receives it."""
    to = Stream(
        org=of.org,
        project=of.project,
        stream=row.uid,
        thread=_thread_of(row.uid, since),
        topic=Topic.MONITOR,
    )
    page = _notification(
        of, row, since, word, CALM_TAIL if word is BurnNotification.CALM else BURNING_TAIL
    )
    if word is not BurnNotification.BURNING:
        paged = await enqueue_to_notified_channels(
            tx, to.org, to.project, to.stream, to.thread, to.topic, page
        )
        return bool(paged)
    own = await page_stream(tx, to, of.channels, page)
    routed = await page_route(tx, to, of.route, page, spared=own)
    return bool(own or routed)


def _thread_of(rule: UUID, since: Instant) -> UUID:
    return uuid5(rule, str(since))


def _notification(
    of: BurnSubject, row: BurnRuleRow, since: Instant, word: BurnNotification, tail: str
) -> Notification:
    calm = word is BurnNotification.CALM
    rule = row.rule
    wide, narrow = spelt(rule.long_us), spelt(rule.short_us)
    times = f"{float(rule.threshold):g}"
    severity = IncidentImpact.MAJOR if rule.severity is BurnSeverity.PAGE else IncidentImpact.MINOR
    return Notification(
        event=f"budget.{word.value}",
        status="recovered" if calm else "down",
        severity=severity.value,
        title=clipped_title(of.name, tail),
        lines=(f"burn rate {times} over {wide} and {narrow}; budget of {row.window}",),
        why="",
        since=since,
        path=of.path,
        runbook_url=rule.runbook_url or of.runbook_url,
    )
