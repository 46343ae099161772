"""What needs attention: services, then monitors, then regions, each with a cause and one action."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from ....probes.check.result import UnknownReason
from ....storage.core.instant import Instant
from ....storage.core.key import MonitorKey
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.open_by_object import OpenIncident, select_open_by_object
from ....storage.monitors.rules.monitor_state import MonitorStatus
from ....storage.results.queries.results import select_failed_conditions
from ....storage.services.queries.service_health import HealthNow
from ...monitors.console.project_statuses import MonitorData, refreshed
from ...services.console.service_list import ServiceListData
from ...services.console.service_summary import some_names
from ...ui.failure_help import explain_trouble, failure_sentence
from ...ui.formatting import Moment, ago, count
from ...ui.monitor_status import WORDS, MonitorStatusText, recovery_sentence
from ...ui.reliability_text import mark_of, word_of
from ...wire.route import Request
from ...wire.scope_keys import org_of, project_of

ATTENTION_MOST: Final = 10
_BAD_SERVICES: Final = ("down", "degraded", "unknown")


@dataclass(frozen=True, slots=True)
class AttentionItem:
    """Object that needs attention. `incident` is its open incident, if it has one."""

    path: str
    name: str
    mark: str
    said: str
    since: Moment | None
    why: str
    # Failed condition with its measured value, empty without one.
    condition: str = ""
    incident: OpenIncident | None = None


@dataclass(frozen=True, slots=True)
class Attention:
    """`marks` are those of all services, for the first line."""

    items: Sequence[AttentionItem]
    # Objects that need attention and are not in `items`.
    further: int
    marks: Sequence[str]


async def select_attention(
    ask: Request, tx: Tx, watched: Sequence[MonitorData], facts: ServiceListData
) -> Attention:
    """Reads the list of at most ATTENTION_MOST objects. Of each kind, the worst are first."""
    health = facts.health
    incidents = await select_open_by_object(tx, org_of(ask), project_of(ask))
    names = {item.row.id: item.row.name for item in watched}
    of_services = {one.service: one for one in incidents if one.monitor is None}
    services = [
        AttentionItem(
            f"/services/{row.uid}",
            row.name,
            mark_of(health[row.key]),
            f"is {word_of(health[row.key])}",
            None,
            _members(health[row.key], names),
            incident=of_services.get(row.id),
        )
        for row in facts.rows
        if mark_of(health[row.key]) in _BAD_SERVICES
    ]
    services.sort(key=lambda one: (_BAD_SERVICES.index(one.mark), one.name.lower()))
    # A region that does not report is one item, in place of its monitors without a fresh result.
    bad = concerned(watched)
    found = [item for item in bad if not _is_lost(item)]
    most = max(ATTENTION_MOST - len(services), 0)
    shown = concerned(await refreshed(tx, found[:most]))
    conditions = await select_failed_conditions(tx, _failed(shown))
    of_monitors = {one.monitor: one for one in incidents if one.monitor is not None}
    monitors = [
        _monitor(item, conditions.get(item.key, ""), of_monitors.get(item.row.id), tx.now)
        for item in shown
    ]
    regions = _regions(bad, f"/projects/{ask.ids['projectID']}/monitors")
    items = [*services, *monitors, *regions]
    total = len(services) + len(found) + len(regions)
    return Attention(
        items[:ATTENTION_MOST],
        max(total - ATTENTION_MOST, 0),
        [mark_of(health[row.key]) for row in facts.rows],
    )


def _members(health: HealthNow, names: Mapping[int, str]) -> str:
    """Returns which members are down or unknown; empty if the state has another cause."""
    said = []
    for keys, word in ((health.failing, "down"), (health.unseen, "unknown")):
        found = [names[key] for key in keys if key in names]
        if found:
            said.append(f"{some_names(found)} {'is' if len(found) == 1 else 'are'} {word}.")
    return " ".join(said)


def concerned(watched: Iterable[MonitorData]) -> list[MonitorData]:
    """Returns down monitors, then unknown ones and pending ones that no check reaches.

    The newest are first.
    """
    found = [
        item
        for item in watched
        if item.state in (MonitorStatusText.DOWN, MonitorStatusText.UNKNOWN)
        or (item.state is MonitorStatusText.PENDING and (item.is_unserved or item.trouble))
    ]
    return sorted(found, key=lambda item: (item.state is not MonitorStatusText.DOWN, -_since(item)))


def _is_lost(item: MonitorData) -> bool:
    return item.is_unserved and item.state is not MonitorStatusText.DOWN


def _failed(shown: Iterable[MonitorData]) -> Mapping[MonitorKey, Instant]:
    """Returns the instant of the newest result of each monitor that is down."""
    return {
        item.key: item.standing.last_at
        for item in shown
        if item.state is MonitorStatusText.DOWN
        and item.standing is not None
        and item.standing.last_at is not None
    }


def _since(item: MonitorData) -> int:
    standing = item.standing
    if standing is None:
        return 0
    return standing.since if item.state is MonitorStatusText.DOWN else standing.last_at or 0


def _monitor(
    item: MonitorData, condition: str, incident: OpenIncident | None, now: Instant
) -> AttentionItem:
    since = _since(item)
    return AttentionItem(
        f"/monitors/{item.row.uid}",
        item.row.name,
        item.state,
        f"is {WORDS[item.state]}",
        ago(Instant(since), now) if since else None,
        why(item, now),
        condition,
        incident,
    )


def why(item: MonitorData, now: Instant) -> str:
    """Returns the reason of the down or unknown state in one line."""
    standing = item.standing
    if item.state is not MonitorStatusText.DOWN:
        if item.trouble:
            return f"The check cannot run: {explain_trouble(UnknownReason(item.trouble))}."
        if item.is_unserved:
            return f"Region {item.row.region} has no live worker or agent; no check runs."
    if standing is None or standing.last_at is None:
        return ""
    if item.state is MonitorStatusText.DOWN and standing.last_up:
        return recovery_sentence(standing.successes, item.row.recovery_threshold)
    if item.state is MonitorStatusText.DOWN:
        many = standing.failures_in_row
        return f"{_failed_by(item)}, {count(many, 'consecutive failure')}."
    if standing.status == MonitorStatus.PENDING and not standing.last_up:
        return f"{_failed_by(item)}; down after {item.row.failure_threshold} consecutive failures."
    newest = ago(standing.last_at, now).text
    return f"The last result, from {newest}, is stale; current status is unknown."


def _failed_by(item: MonitorData) -> str:
    standing = item.standing
    return "" if standing is None else failure_sentence(standing.msg, standing.code, item.row.type)


def _regions(bad: Iterable[MonitorData], monitors: str) -> list[AttentionItem]:
    """Returns the regions in which no worker or agent checks the project's monitors."""
    many = Counter(item.row.region for item in bad if _is_lost(item))
    return [
        AttentionItem(
            f"{monitors}?{urlencode({'region': name})}",
            f"Region {name}",
            "unknown",
            "is not reporting",
            None,
            f"No worker or agent reports, so {count(many[name], 'monitor')} cannot be checked.",
        )
        for name in sorted(many)
    ]
