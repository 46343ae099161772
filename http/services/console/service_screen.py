"""Service screen: whether the service is healthy in the first line, then its figures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import SECOND
from ....storage.incidents.rules.incident import IncidentStatus
from ....storage.services.queries.service_health import HealthNow
from ....storage.services.rows import ServiceRow
from ....storage.services.rules.service_report import WINDOWS
from ...ui.bundle_notice import managed
from ...ui.data_table import exact
from ...ui.form_routes import page_route
from ...ui.formatting import count, setting
from ...ui.live_page import not_modified, tag_of, tagged
from ...ui.plots.burn_gauge import scale
from ...ui.reliability_text import (
    LABELS,
    ReliabilityText,
    availability,
    budget_left,
    mark_of,
    objective_text,
    verdict_text,
    word_of,
)
from ...ui.render import page
from ...ui.shell.mute_fact import mute_facts
from ...wire.route import Request, Response
from ..routes.support_hours import support_text
from . import budget_plot as budget
from . import service_timeline as axis
from .alerting_summary import spoken
from .burn_gauges import burn_note, gauges
from .member_table import SHOWN_MOST, member_lines, policy_words
from .response_panel import RESPONSE_RANGES, response_figures
from .revision_table import revision_lines, segment_lines
from .service_data import ServiceFacts, select_facts
from .service_summary import summary, why

RANGE_WORDS: Final = {"7d": "7 d", "14d": "14 d", "30d": "30 d"}


class ServiceQuery(msgspec.Struct, frozen=True):
    window: Literal["", "24h", "7d", "30d", "90d"] = ""
    range: Literal["7d", "14d", "30d"] = "14d"
    answers: Literal["7d", "30d", "90d"] = "30d"


@dataclass(frozen=True, slots=True)
class ServiceStat:
    label: str
    told: ReliabilityText


@dataclass(frozen=True, slots=True)
class Neighbour:
    uid: UUID
    name: str
    mark: str
    word: str


async def render_service(ask: Request) -> Response:
    tag = await tag_of(ask, (), services=True)
    return not_modified(ask, tag) or tagged(await _render(ask), tag)


async def _render(ask: Request) -> Response:
    query: ServiceQuery = ask.query
    facts = await select_facts(ask, query.window, query.range, query.answers)
    mark, sentence = summary(facts)
    window, objective = facts.windows[facts.shown], facts.objective
    buckets = facts.days if facts.shown == "90d" else facts.hours
    burned = (
        None
        if objective is None
        else budget.plot(window, objective, buckets, budget.unit_of(facts.shown))
    )
    newest = facts.revisions[-1] if facts.revisions else None
    of_bundle = managed(facts.row)
    return page(
        "services/console/service_screen.html",
        frame=replace(facts.frame, is_read_only=bool(of_bundle and of_bundle.is_read_only)),
        managed=of_bundle,
        supersedes=facts.supersedes,
        row=facts.row,
        support=support_text(facts.row),
        mark=mark,
        sentence=sentence,
        why=why(facts),
        open=[one for one in facts.incidents if one.status != IncidentStatus.RESOLVED],
        figures=figures(facts),
        repairing=_repairing(facts),
        shown=facts.shown,
        label=LABELS[facts.shown],
        tabs=[(name, LABELS[name]) for name in WINDOWS if name in facts.targets],
        objective=objective,
        burned=burned,
        left=budget_left(window, objective),
        sealed=budget.sealed_note(facts.row.sealed_through, facts.now),
        gauges=gauges(facts),
        scale=scale(),
        burn_note=burn_note(facts, facts.now),
        ranges=list(RANGE_WORDS.items()),
        range_name=facts.range_name,
        lanes=axis.plot(facts),
        responses=response_figures(facts.responses),
        response_ranges=[(name, setting(us // SECOND)) for name, us in RESPONSE_RANGES.items()],
        answers=query.answers,
        members=member_lines(facts),
        further=max(len(facts.members) - SHOWN_MOST, 0),
        policy=policy_words(newest.policies, len(newest.sli)) if newest else "",
        upstreams=_neighbours(facts.upstreams),
        dependants=_neighbours(facts.dependants),
        spoken=spoken(facts),
        mutes=mute_facts(facts.mutes, facts.now),
        revisions=revision_lines(facts),
        segments=segment_lines(window),
    )


def figures(facts: ServiceFacts) -> list[ServiceStat]:
    """Returns the objective and its budget, then each window. Withheld figures have a reason."""
    found = []
    window = facts.windows[facts.shown]
    if facts.objective is not None:
        over = f"over {LABELS[facts.shown]}"
        found.append(
            ServiceStat("Objective", ReliabilityText(objective_text(facts.objective), over))
        )
        found.append(ServiceStat("Budget left", budget_left(window, facts.objective)))
    for name in ("30d", "24h", "7d", "90d"):
        target = facts.targets.get(name)
        told = availability(facts.windows[name])
        met = verdict_text(facts.windows[name], None if target is None else target.objective)
        if met:
            told = ReliabilityText(told.text, f"{told.note}, {met}", told.withheld)
        found.append(ServiceStat(LABELS[name], told))
    return found


def _repairing(facts: ServiceFacts) -> list[str]:
    """Returns the ranges under repair as sentences. The old figures remain until the repair."""
    words = {
        "declared_backfill": "backfilled from the first revision",
        "late_result": "a late result arrived",
        "maintenance": "maintenance was announced or annulled",
    }
    said = []
    for repair in facts.repairing[:5]:
        reason = words.get(repair.reason, repair.reason.replace("_", " "))
        tried = ""
        if repair.state == "failed":
            tried = f" It failed {count(repair.attempts, 'time')} and will be retried."
        said.append(f"{exact(repair.from_)} to {exact(repair.to)}, as {reason}.{tried}")
    further = len(facts.repairing) - len(said)
    return [*said, f"{further} more."] if further > 0 else said


def _neighbours(found: Sequence[tuple[ServiceRow, HealthNow]]) -> list[Neighbour]:
    return [Neighbour(row.uid, row.name, mark_of(health), word_of(health)) for row, health in found]


_SERVICE: Final = ("service", "serviceID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/services/{serviceID}",
        action=Permission(Need.VIEWER),
        scope=_SERVICE,
        handler=render_service,
        summary="A service.",
        query=ServiceQuery,
    ),
)
