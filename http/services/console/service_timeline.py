"""Time line of a service: changes, state, incidents, maintenance and revisions on one axis."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ....storage.core.instant import Instant
from ....storage.services.queries.console_services import IncidentOf
from ...ui.change_marks import counted, marks, marks_text
from ...ui.data_table import MaintenanceTable, exact
from ...ui.formatting import count, duration
from ...ui.plots.timeline_lanes import Band, Divider, Lanes, lanes
from ...ui.reliability_text import LABELS
from ...ui.shown_time import zone_word
from . import state_history as states
from .budget_plot import ticks
from .service_data import RANGES, ServiceFacts

TABLE_MOST = 60
EPOCHS_MOST = 60


@dataclass(frozen=True, slots=True)
class TimelinePlot:
    drawn: Markup
    table: MaintenanceTable


def plot(facts: ServiceFacts) -> TimelinePlot:
    length, step = RANGES[facts.range_name]
    from_, to = Instant(facts.now - length), facts.now
    slots = states.slots(facts.row, facts.hours, from_, to, step)

    def share(at: Instant) -> float:
        return (min(max(at, from_), to) - from_) / length

    incidents = incident_bands(facts.incidents, to, share)
    maintenance = [
        Band(share(one.starts_at), share(one.over_at), f"{one.monitor or 'The whole project'}")
        for one in facts.maintenance
    ]
    cuts = _cuts(facts, from_, share)
    label = LABELS.get(facts.range_name, f"{facts.range_name[:-1]} days")
    said = (
        f"{label} on one axis: {counted(facts.changes)}, state, "
        f"{count(len(incidents), 'incident')}, "
        f"{count(len(maintenance), 'maintenance', 'maintenances')}, "
        f"{count(len(cuts), 'beginning')} of a revision or an epoch"
    )
    drawn = Lanes(
        changes=marks(facts.changes, from_, to, share),
        states=states.drawn(slots, share),
        incidents=incidents,
        maintenance=maintenance,
        cuts=cuts,
        ticks=ticks(from_, to),
    )
    return TimelinePlot(lanes(drawn, said), _table(facts, from_, slots))


def incident_bands(
    incidents: Sequence[IncidentOf], to: Instant, share: Callable[[Instant], float]
) -> list[Band]:
    return [
        Band(
            share(one.started_at),
            share(one.resolved_at or to),
            f"INC-{one.number}, {one.title}, {one.status}",
        )
        for one in incidents
    ]


def incident_text(incidents: Sequence[IncidentOf]) -> list[tuple[Instant, str, str]]:
    """Returns (start, description, duration)."""
    found = []
    for incident in incidents:
        about = f" ({incident.monitor})" if incident.monitor else ""
        over = incident.resolved_at
        ended = "open" if over is None else f"lasted {duration(over - incident.started_at)}"
        found.append(
            (incident.started_at, f"INC-{incident.number}{about}: {incident.title}", ended)
        )
    return found


def _cuts(facts: ServiceFacts, from_: Instant, share: Callable[[Instant], float]) -> list[Divider]:
    """Returns the revisions, and the epochs that begin within a revision."""
    return [
        Divider(share(at), name, said)
        for at, name, said in _beginnings(facts)
        if from_ <= at <= facts.now
    ]


def _beginnings(facts: ServiceFacts) -> list[tuple[Instant, str, str]]:
    found = [
        (one.effective_at, f"r{one.revision}", f"Revision {one.revision}")
        for one in facts.revisions
    ]
    known = {at for one in facts.revisions for at in (one.effective_at, one.governs_from)}
    found += [
        (one.effective_at, f"e{one.seq}", f"Epoch {one.seq} (member changed)")
        for one in facts.epochs[-EPOCHS_MOST:]
        if one.effective_at not in known
    ]
    return sorted(found)


def _table(
    facts: ServiceFacts, from_: Instant, slots: Sequence[states.StateSlot]
) -> MaintenanceTable:
    found = [
        *states.plot_text(slots),
        *incident_text(facts.incidents),
        *marks_text(facts.changes),
        *(
            (
                one.starts_at,
                f"Maintenance: {one.monitor or 'the whole project'}",
                duration(one.over_at - one.starts_at),
            )
            for one in facts.maintenance
        ),
        *((at, said, "") for at, _, said in _beginnings(facts) if at >= from_),
    ]
    return table("Changes, incidents, maintenance and revisions", found)


def table(
    caption: str, found: Sequence[tuple[Instant, str, str]], most: int = TABLE_MOST
) -> MaintenanceTable:
    """Returns a table of the newest entries, newest first."""
    rows = sorted(found, key=lambda row: row[0], reverse=True)
    return MaintenanceTable(
        caption,
        [f"When, {zone_word()}", "What", "How long"],
        [[exact(at), what, told] for at, what, told in rows[:most]],
        max(len(rows) - most, 0),
    )
