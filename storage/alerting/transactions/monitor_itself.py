"""Pass of self-monitoring: observes the conditions of Leadline, and opens and resolves incidents.

Invariants: at most one open incident exists for a condition of a project. No monitor changes its
state. No update of such an incident is public. Passes follow each other, also those of several
processes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...agents.queries.fleet import select_live_regions
from ...core.instant import MINUTE, Instant
from ...engine.pools import Tx
from ...incidents.rows import IncidentRow
from ...incidents.rules.incident import IncidentImpact, IncidentSource, IncidentStatus
from ...incidents.tables import incidents
from ...incidents.transactions.write_incident import (
    IncidentEntry,
    Opening,
    open_incident,
    write_entry,
)
from ...scheduling.tables.presences import select_key_states
from ..queries import self_monitoring as facts
from ..rules.self_condition import (
    BOUNDS_US,
    RESOLVED_BODY,
    SelfAction,
    SelfCondition,
    Streak,
    body_of,
    observe,
    title_of,
)
from ..tables import self_conditions as conditions
from ..tables.self_conditions import SelfConditionRow

# Least time between two heartbeats to the external URL.
HEARTBEAT_EVERY_US: Final = MINUTE
# Incidents that a pass opens or resolves. The others follow in the next pass.
CHANGES_MOST: Final = 50

_KINDS: Final = frozenset(kind.value for kind in SelfCondition)

Place = tuple[int, int, str, str]


@dataclass(frozen=True, slots=True)
class Observer:
    """What only the observing process knows.

    `project` is the organization and the project of the setting, as slugs; None without one.
    `opens_nothing` states whether the keys of `host` decrypt no stored value, and `beats` whether
    it sends heartbeats to an external URL.
    """

    host: str
    project: tuple[str, str] | None
    opens_nothing: bool
    beats: bool


@dataclass(frozen=True, slots=True)
class SelfReport:
    """Result of a pass: incidents by kind, and the conditions whose incident was opened.

    `is_lost`: the setting names no project. `beats`: a heartbeat is due.
    """

    opened: Counter[str]
    resolved: Counter[str]
    reported: Counter[str]
    is_lost: bool
    beats: bool


async def monitor_itself(tx: Tx, observer: Observer) -> SelfReport:
    await conditions.lock_self_monitor(tx)
    home = None
    if observer.project is not None:
        home = await facts.select_project_of_slugs(tx, *observer.project)
    lags = await facts.lags(tx, tx.now)
    holding, unknown = await _observe(tx, observer, home, lags=lags)
    stored = await conditions.select_self_conditions(tx)
    # Another version can have stored a kind that this one does not know.
    known = {_place(row): row for row in stored if row.kind in _KINDS}
    decided = []
    for place in sorted(known.keys() | holding.keys()):
        kind = SelfCondition(place[2])
        holds = None if place in unknown else place in holding
        before = _streak(known[place]) if place in known else None
        after, action = observe(before, holds, BOUNDS_US[kind], tx.now)
        decided.append((place, before, after, action))
    changes = [one for one in decided if one[3] is not SelfAction.NOTHING][:CHANGES_MOST]
    left = {one[0] for one in decided if one[3] is not SelfAction.NOTHING} - {
        one[0] for one in changes
    }
    reported = Counter(
        place[2]
        for place, before, after, _ in decided
        for streak in [before if place in left else after]
        if streak is not None and streak.reported
    )
    open_ = await _lock_open(tx, [known[p] for p, _, _, a in changes if a is SelfAction.RESOLVE])
    for place, before, after, action in decided:
        if place in left:
            continue
        await _apply(tx, place, before, after, action, holding.get(place, 0), open_.get(place))
    opened = Counter(one[0][2] for one in changes if one[3] is SelfAction.OPEN)
    resolved = Counter(one[0][2] for one in changes if one[3] is SelfAction.RESOLVE)
    # Leadline may be unable to page, also without a project whose incident says so.
    stops = lags or observer.opens_nothing
    beats = (
        observer.beats
        and not stops
        and await conditions.claim_heartbeat(tx, tx.now, HEARTBEAT_EVERY_US)
    )
    is_lost = observer.project is not None and home is None
    return SelfReport(opened, resolved, reported, is_lost, beats)


async def _observe(
    tx: Tx, observer: Observer, home: tuple[int, int] | None, *, lags: bool
) -> tuple[dict[Place, int], set[Place]]:
    """Returns the conditions that hold, with their count, and those that only others know."""
    holding: dict[Place, int] = {}
    unknown: set[Place] = set()
    kind = SelfCondition.REGION_WITHOUT_PROBER.value
    for org, project, region, count in await facts.select_unwatched(
        tx, await select_live_regions(tx)
    ):
        holding[org, project, kind, region] = count
    failed = await facts.count_failed_deliveries(tx, tx.now)
    if home is None:
        return holding, unknown
    if failed:
        holding[*home, SelfCondition.DELIVERIES_FAIL.value, ""] = failed
    if lags:
        holding[*home, SelfCondition.STORE_LAGS.value, ""] = 1
    opens = SelfCondition.KEY_OPENS_NOTHING.value
    if observer.opens_nothing:
        holding[*home, opens, observer.host] = 1
    hosts = await select_key_states(tx, tx.now)
    for host, fails in hosts.items():
        if fails:
            holding[*home, opens, host] = 1
    others = {host for host, fails in hosts.items() if fails is None} - {observer.host}
    return holding, {(*home, opens, host) for host in others}


def _place(row: SelfConditionRow) -> Place:
    return row.org, row.project, row.kind, row.subject


def _streak(row: SelfConditionRow) -> Streak:
    holds = row.holds_since is not None
    since = row.holds_since or row.clear_since
    assert since is not None, "a constraint of the table"
    return Streak(holds, since, row.observed_at, row.reported)


async def _lock_open(tx: Tx, rows: Sequence[SelfConditionRow]) -> dict[Place, IncidentRow]:
    """Locks the open incidents of conditions that end, in ascending order."""
    named: list[tuple[UUID, Place]] = sorted(
        (row.incident, _place(row)) for row in rows if row.incident is not None
    )
    found = {}
    for uid, place in named:
        row = await incidents.lock_incident(tx, uid)
        if row is not None and row.status != IncidentStatus.RESOLVED:
            found[place] = row
    return found


async def _apply(
    tx: Tx,
    place: Place,
    before: Streak | None,
    after: Streak | None,
    action: SelfAction,
    count: int,
    incident: IncidentRow | None,
) -> None:
    if action is SelfAction.RESOLVE and incident is not None:
        entry = IncidentEntry(
            status=IncidentStatus.RESOLVED, body=RESOLVED_BODY, public=False, author=None
        )
        await write_entry(tx, incident, entry)
    if after is None:
        if before is not None:
            await conditions.delete_self_condition(tx, place)
        return
    if after == before:
        return
    opened = await _open(tx, place, after.since, count) if action is SelfAction.OPEN else None
    await conditions.put_self_condition(
        tx,
        place,
        holds=after.holds,
        since=after.since,
        observed_at=after.observed_at,
        reported=after.reported,
        incident=opened,
    )


async def _open(tx: Tx, place: Place, since: Instant, count: int) -> int:
    """Opens the incident, which starts the default policy of the project. Returns its id."""
    org, project, kind, subject = place
    row = await open_incident(
        tx,
        Opening(
            org=org,
            project=project,
            monitor=None,
            title=title_of(SelfCondition(kind), subject),
            status=IncidentStatus.INVESTIGATING,
            impact=IncidentImpact.MAJOR,
            source=IncidentSource.AUTO,
            body=body_of(SelfCondition(kind), count),
            started_at=since,
            author=None,
            escalation_policy=await facts.select_default_policy(tx, org, project),
            public=False,
            self_condition=kind,
        ),
    )
    return row.id
