"""Random facts of a status page, with a mark in every text and id that the public must not see."""

from dataclasses import fields, is_dataclass
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from leadline.storage.core.availability import figure
from leadline.storage.core.instant import DAY, MINUTE, Instant
from leadline.storage.core.sli import Split
from leadline.storage.incidents.rules.incident import IncidentImpact, IncidentSource, IncidentStatus
from leadline.storage.status_pages.rules.status_page import (
    ComponentDay,
    ComponentFacts,
    ComponentMeasurement,
    ComponentSource,
    ComponentStatus,
    Incident,
    Maintenance,
    NoDataReason,
    Now,
    PageFacts,
    Postmortem,
    Update,
    Visibility,
)

NOW = Instant(1_781_015_168_000_000)
# This mark is never in a public text.
SECRET = "\ue000"
HOSTILE = [
    *("<script>alert(1)</script>", "a & b", "]]>", "\"quoted\" & 'so'", "&amp;lt;", "<![CDATA["),
    *(
        "two\nlines\n\nand a gap",
        " ",
        "\0\x08\x1b",
        "\ud800",
        "\ufffe",
        "Ünïcode ✓ 🌊",
        "{{ 7 * 7 }}",
    ),
]
texts = st.one_of(
    st.sampled_from(["Payments", "Search", "Order e-mails"]),
    st.sampled_from(HOSTILE),
    st.text(st.characters(exclude_characters=SECRET), min_size=1, max_size=20),
)
# Few ids, so that bindings and incidents often refer to the same one.
MONITORS = [UUID(int=0xA0000 + n) for n in range(2)]
SERVICES = [UUID(int=0xB0000 + n) for n in range(2)]
PROJECTS = [UUID(int=0xC0000 + n) for n in range(2)]
# Most objects are public: a nearly empty page could leak little.
often = st.sampled_from([True, True, True, False])
instants = st.integers(0, 95 * 24 * 60).map(lambda ago: Instant(NOW - ago * MINUTE))


def secret(draw: st.DrawFn, what: str) -> str:
    return f"{SECRET}{what} {draw(st.integers(0, 9))}"


def uids() -> st.SearchStrategy[UUID]:
    """Draws ids that the public must not see."""
    return st.integers(0, 9).map(lambda number: UUID(int=0xF0000 + number))


@st.composite
def nows(draw: st.DrawFn) -> Now:
    """Draws the state of a bound component."""
    status = draw(st.sampled_from(ComponentStatus))
    reasons = st.sampled_from([one for one in NoDataReason if one is not NoDataReason.NOT_BOUND])
    return Now(status, draw(reasons) if status is ComponentStatus.NO_DATA else None)


@st.composite
def measures(draw: st.DrawFn) -> ComponentMeasurement:
    parts = st.integers(0, 24 * 60).map(lambda minutes: minutes * MINUTE)
    split = Split(*(draw(parts) for _ in range(4)))
    return ComponentMeasurement(
        figure=figure(split, sealed=draw(st.booleans())),
        split=split,
        sample=draw(st.integers(0, 10_000)),
        since=draw(st.none() | instants),
        days=[ComponentDay(Instant(NOW - NOW % DAY), split)],
    )


@st.composite
def components(draw: st.DrawFn, number: int) -> ComponentFacts:
    source = draw(st.sampled_from(ComponentSource))
    anchors: dict[ComponentSource, st.SearchStrategy[UUID | None]] = {
        ComponentSource.MONITOR: st.sampled_from([*MONITORS, *MONITORS, None]),
        ComponentSource.SERVICE: st.sampled_from([*SERVICES, *SERVICES, None]),
        ComponentSource.MANUAL: st.none(),
    }
    anchor = draw(anchors[source])
    gone = source is not ComponentSource.MANUAL and anchor is None
    return ComponentFacts(
        uid=UUID(int=0xD0000 + number),
        name=draw(texts),
        description=draw(texts),
        group=draw(st.sampled_from(["", "Shop"])),
        source=source,
        anchor=anchor,
        now=Now(ComponentStatus.NO_DATA, NoDataReason.NOT_BOUND) if gone else draw(nows()),
        measured=None if anchor is None else draw(measures()),
        updated_at=draw(instants),
    )


@st.composite
def updates(draw: st.DrawFn, seq: int, from_alert: bool) -> Update:
    public, by_person = draw(often), draw(often)
    hidden = not public or (from_alert and not by_person)
    return Update(
        uid=draw(uids()),
        seq=seq,
        status=draw(st.none() | st.sampled_from(IncidentStatus)),
        body=secret(draw, "body") if hidden else draw(texts),
        public=public,
        author=secret(draw, "author"),
        by_person=by_person,
        created_at=draw(instants),
    )


@st.composite
def postmortems(draw: st.DrawFn) -> Postmortem:
    at = draw(instants)
    return Postmortem(
        uid=draw(uids()),
        body=draw(texts),
        declaration_revision=draw(st.none() | st.just(3)),
        author=secret(draw, "author"),
        published_at=at,
        created_at=at,
        updated_at=at,
    )


@st.composite
def incidents(draw: st.DrawFn, number: int, bound: list[UUID]) -> Incident:
    """Draws an incident, usually about the source of a component."""
    started_at = draw(instants)
    status = draw(st.sampled_from([*IncidentStatus, IncidentStatus.RESOLVED]))
    source = draw(st.sampled_from(IncidentSource))
    key = secret(draw, "key") if source is IncidentSource.API and draw(often) else None
    about = draw(st.sampled_from([*bound, *bound, *MONITORS, *SERVICES, None, None]))
    is_acknowledged = draw(st.booleans())
    seqs = range(1, 1 + draw(st.sampled_from([0, 1, 2, 2, 3])))
    return Incident(
        uid=UUID(int=0xE0000 + number),
        project=draw(st.sampled_from(PROJECTS)),
        monitor=about if about in MONITORS else None,
        service=about if about in SERVICES else None,
        external_key=key,
        seq=len(seqs),
        title=title_of(draw, source, key),
        status=status,
        impact=draw(st.sampled_from(IncidentImpact)),
        source=source,
        started_at=started_at,
        resolved_at=Instant(started_at + MINUTE) if status is IncidentStatus.RESOLVED else None,
        acknowledged_at=draw(instants) if is_acknowledged else None,
        acknowledged_by=draw(uids()) if is_acknowledged else None,
        acknowledged_label=secret(draw, "name") if is_acknowledged else "",
        escalation_step=draw(st.none() | st.integers(0, 5)),
        last_escalated_at=draw(st.none() | instants),
        created_at=draw(instants),
        updated_at=draw(instants),
        updates=[draw(updates(seq, key is not None)) for seq in seqs],
        postmortem=draw(postmortems() | st.none()),
    )


def title_of(draw: st.DrawFn, source: IncidentSource, key: str | None) -> str:
    """Draws a title; Leadline and other systems use names that are not public."""
    if key is not None:
        return secret(draw, "alert")
    if source is IncidentSource.AUTO:
        tail = draw(st.sampled_from(["is down", "is degraded", "is something else"]))
        return f"{secret(draw, 'monitor')} {tail}"
    return draw(texts)


@st.composite
def maintenances(draw: st.DrawFn, about: list[UUID]) -> Maintenance:
    starts_at = Instant(NOW + draw(st.integers(-100, 100)) * MINUTE)
    chosen = draw(st.lists(st.sampled_from(about), unique=True)) if about else []
    return Maintenance(
        uid=draw(uids()),
        project=draw(st.sampled_from(PROJECTS)),
        monitor=draw(st.none() | st.sampled_from(MONITORS)),
        starts_at=starts_at,
        over_at=Instant(starts_at + draw(st.integers(1, 100)) * MINUTE),
        reason=draw(texts),
        created_at=draw(instants),
        components=chosen,
    )


@st.composite
def facts(draw: st.DrawFn) -> PageFacts:
    many = draw(st.integers(0, 3))
    parts = [draw(components(number)) for number in range(many)]
    bound = [one.anchor for one in parts if one.anchor is not None]
    planned = maintenances([one.uid for one in parts])
    return PageFacts(
        slug="shop",
        title=draw(texts),
        visibility=draw(st.sampled_from(Visibility)),
        project=draw(st.sampled_from([*PROJECTS, None])),
        components=parts,
        incidents=[draw(incidents(number, bound)) for number in range(draw(st.integers(1, 4)))],
        maintenance=draw(st.lists(planned, max_size=3)),
        as_of=NOW,
    )


def leaves(value: Any) -> list[Any]:
    """Returns all values nested in a value, including the fields of dataclasses."""
    if is_dataclass(value):
        return [leaf for each in fields(value) for leaf in leaves(getattr(value, each.name))]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in leaves(each)]
    if isinstance(value, dict):
        return [leaf for pair in value.items() for leaf in leaves(pair)]
    return [value]
