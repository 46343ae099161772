"""Texts of the fleet screen: problems of regions, processes, and details of agents."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....probes.jobs.agent_protocol import LIVE_SECONDS
from ....storage.agents.queries.fleet import Fleet, RegionLoad
from ....storage.agents.rows import AgentRow, AgentTokenRow
from ....storage.core.instant import SECOND, Instant, to_text
from ....storage.results.queries.results import PackingProgress
from ...ui.formatting import Moment, ago, count, duration, moment, number

# A run that has waited this long indicates too few workers or agents.
LATE_US: Final = 10 * SECOND
# Prefix of the source of an issued token; the row's id follows.
_OF_TABLE: Final = "token:"
_OF_CONFIGURATION: Final = "agent:"


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """First line of the screen: its mark, and the problems if any exist."""

    mark: str
    text: str
    wrong: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RegionItem:
    name: str
    mark: str
    state: str
    monitors: str
    workers: str
    agents: str
    pending: str
    lag: str


@dataclass(frozen=True, slots=True)
class ProcessItem:
    host: str
    uid: UUID
    roles: str
    regions: str
    version: str
    differs: bool
    since: Moment
    heard: Moment


@dataclass(frozen=True, slots=True)
class AgentItem:
    name: str
    source: str
    region: str
    mark: str
    state: str
    version: str
    differs: bool
    carrier: int
    kinds: str
    heard: Moment


@dataclass(frozen=True, slots=True)
class AgentTokenItem:
    uid: UUID
    name: str
    region: str
    made: Moment
    revoked: Moment | None


def first_of(fleet: Fleet, watched: Mapping[str, int]) -> FleetSummary:
    """Summarizes whether every region with active monitors is probed in time."""
    quiet = [one.name for one in fleet.regions if not one.is_live and watched.get(one.name)]
    late = [one for one in fleet.regions if (one.lag_us(fleet.at) or 0) >= LATE_US]
    wrong = [_quiet_words(name, watched[name]) for name in quiet]
    wrong += [_late_words(one, fleet.at) for one in late if one.is_live]
    live = [one for one in fleet.regions if one.is_live]
    if quiet:
        return FleetSummary("degraded" if live else "down", f"No prober in {_listed(quiet)}", wrong)
    if wrong:
        return FleetSummary(
            "degraded", f"Runs wait in {_listed([one.name for one in late])}", wrong
        )
    if not live:
        return FleetSummary("unknown", "No probers, no monitors")
    return FleetSummary("up", f"{count(len(live), 'region')} probed")


def _quiet_words(region: str, monitors: int) -> str:
    has = "monitor is" if monitors == 1 else "monitors are"
    return (
        f"Region {region} has no live prober: {number(monitors)} {has} not "
        "checked and become unknown."
    )


def _late_words(load: RegionLoad, now: Instant) -> str:
    waited = duration(load.lag_us(now) or 0)
    return (
        f"Region {load.name}: the oldest unclaimed run waits for {waited}. There are not enough "
        "probers, or none can run it."
    )


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def region_lines(fleet: Fleet, watched: Mapping[str, int]) -> list[RegionItem]:
    return [_region(one, fleet.at, watched.get(one.name, 0)) for one in fleet.regions]


def _region(load: RegionLoad, now: Instant, monitors: int) -> RegionItem:
    lag_us = load.lag_us(now)
    mark, state = "up", "probed"
    if not load.is_live:
        mark, state = ("down", "offline") if monitors else ("unknown", "offline, no monitors")
    elif lag_us is not None and lag_us >= LATE_US:
        mark, state = "degraded", "late"
    return RegionItem(
        name=load.name,
        mark=mark,
        state=state,
        monitors=number(monitors),
        workers=number(load.workers),
        agents=number(load.agents),
        pending=number(load.pending_jobs),
        lag="none" if lag_us is None else duration(lag_us),
    )


def process_lines(fleet: Fleet, version: str) -> list[ProcessItem]:
    """Returns the process list. `version` is the version of the answering process."""
    return [
        ProcessItem(
            host=row.host,
            uid=row.process,
            roles=", ".join(row.roles),
            regions=", ".join(row.regions) or "none",
            version=row.version,
            differs=row.version != version,
            since=moment(row.from_at, fleet.at),
            heard=ago(row.through_at, fleet.at),
        )
        for row in fleet.processes
    ]


def agent_lines(rows: Sequence[AgentRow], now: Instant, version: str) -> list[AgentItem]:
    return [_agent(row, now, version) for row in rows]


def _agent(row: AgentRow, now: Instant, version: str) -> AgentItem:
    is_live = now - row.last_seen_at < LIVE_SECONDS * SECOND
    return AgentItem(
        name=row.name or "unnamed",
        source=_source(row.credential),
        region=row.region,
        mark="up" if is_live else "unknown",
        state="live" if is_live else "no heartbeat",
        version=row.version or "not reported",
        differs=bool(row.version) and row.version != version,
        carrier=row.carrier,
        kinds=", ".join(row.workflow_kinds) or "none",
        heard=ago(row.last_seen_at, now),
    )


def _source(credential: str) -> str:
    if credential.startswith(_OF_TABLE):
        return "token from this screen"
    if credential.startswith(_OF_CONFIGURATION):
        return "token from the configuration file"
    return "token for all regions"


def token_lines(rows: Collection[AgentTokenRow], now: Instant) -> list[AgentTokenItem]:
    return [
        AgentTokenItem(
            uid=row.uid,
            name=row.name,
            region=row.region,
            made=moment(row.created_at, now),
            revoked=None if row.revoked_at is None else moment(row.revoked_at, now),
        )
        for row in rows
    ]


def packing_line(progress: PackingProgress | None) -> str:
    """Returns how far results are packed, empty before the first packed day."""
    if progress is None:
        return ""
    parts = [f"Results before {to_text(progress.packed_through)[:10]} (UTC) are packed."]
    if progress.days_left:
        parts.append(f"{count(progress.days_left, 'day')} must still be packed.")
    if progress.failures:
        stored = count(progress.failures, "day")
        parts.append(f"{stored} of single monitors could not be packed as usual (see the log).")
    return " ".join(parts)
