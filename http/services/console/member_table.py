"""Members of a service with their current state and last 24 hours.

Also describes the policies that compute the state of the service from its members.
"""

from dataclasses import dataclass
from uuid import UUID

from markupsafe import Markup

from ....storage.core.instant import SECOND
from ....storage.core.key import MonitorKey
from ....storage.monitors.rules.monitor import MonitorType
from ....storage.scheduling.rules.run_schedule import longest_us
from ....storage.services.queries.console_services import MemberRow
from ....storage.services.rules.epoch import Revision
from ....storage.services.rules.service_health import (
    AggregationMode,
    MemberState,
    MissingData,
    Policies,
    RegionMode,
)
from ...ui.formatting import count
from ...ui.plots.heartbeat_strip import strip
from ...ui.time_slots import beats
from .service_data import ServiceFacts

SHOWN_MOST = 60
MARKS = {
    MemberState.UP: ("up", "up"),
    MemberState.DOWN: ("down", "down"),
    MemberState.MISSING: ("unknown", "unknown"),
    MemberState.NOT_BEGUN: ("pending", "not begun"),
    MemberState.PAUSED: ("paused", "paused"),
    MemberState.MAINTENANCE: ("maint", "in maintenance"),
}


@dataclass(frozen=True, slots=True)
class MemberItem:
    uid: UUID
    name: str
    mark: str
    word: str
    region: str
    strip: Markup | None
    counts: bool


def member_lines(facts: ServiceFacts) -> list[MemberItem]:
    """Returns SLI members first, and among them members in trouble first."""
    newest = facts.revisions[-1] if facts.revisions else None
    if newest is None:
        return []
    lines = [_item(facts, newest, member) for member in facts.members[:SHOWN_MOST]]
    return sorted(lines, key=lambda line: not line.counts)


def _item(facts: ServiceFacts, newest: Revision, member: MemberRow) -> MemberItem:
    mark, word = MARKS[facts.health.members.get(member.id, MemberState.MISSING)]
    course = facts.courses.get(MonitorKey((facts.row.org, member.id)))
    drawn = None
    if course is not None:
        held = held_us(member, newest.policies)
        shown = beats(course, facts.axis, facts.now, held_us=held)
        drawn = strip(shown, f"{member.name}, last day in slots of half an hour")
    counts = member.id in newest.sli
    return MemberItem(member.uid, member.name, mark, word, member.region, drawn, counts)


def held_us(member: MemberRow, policies: Policies) -> int:
    """Returns for how long a result of the member is fresh under the policies, in microseconds."""
    interval_us = longest_us(member.interval_seconds, member.schedule, member.timezone)
    if member.type == MonitorType.PUSH:
        return interval_us + member.grace_seconds * SECOND
    return max(policies.active_multiplier * interval_us, policies.active_floor_us)


def policy_words(policies: Policies, members: int) -> str:
    """Returns a description of the policies."""
    if not members:
        return "No SLI members, so the status is unknown."
    return " ".join((_in_region(policies), _over_regions(policies), _missing(policies)))


def _in_region(policies: Policies) -> str:
    match policies.mode:
        case AggregationMode.ALL:
            return "Within a region all SLI members must be up."
        case AggregationMode.ANY:
            return (
                "Within a region the service is degraded if one SLI member is up, healthy"
                " if all are."
            )
        case AggregationMode.QUORUM:
            healthy = count(policies.healthy_min, "member")
            return (
                f"Healthy region: at least {healthy} up; "
                f"degraded: at least {policies.degraded_min}."
            )


def _over_regions(policies: Policies) -> str:
    match policies.region_mode:
        case RegionMode.ALL_REGIONS:
            return "The worst region decides."
        case RegionMode.ANY_REGION:
            return "The best region decides."
        case RegionMode.PER_REGION:
            healthy = count(policies.healthy_min_regions, "healthy region")
            return (
                f"Healthy: at least {healthy}; degraded: at least {policies.degraded_min_regions}."
            )


def _missing(policies: Policies) -> str:
    match policies.missing_data:
        case MissingData.UNKNOWN:
            return "Missing data is unknown."
        case MissingData.BAD:
            return "Missing data counts as down."
        case MissingData.IGNORE:
            return "Missing data is left out while another SLI member has data."
