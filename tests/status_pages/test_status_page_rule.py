"""Rendering of a status page for each audience, compared with the rules of the specification."""

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.outage_text import down_title
from leadline.storage.core.instant import MINUTE, Instant
from leadline.storage.incidents.rules.incident import IncidentImpact, IncidentSource, IncidentStatus
from leadline.storage.services.rules.service_health import Health
from leadline.storage.status_pages.rules.status_page import (
    TITLE_OF_ALERT,
    Audience,
    ComponentFacts,
    ComponentSource,
    ComponentStatus,
    Incident,
    Maintenance,
    NoDataReason,
    Now,
    Page,
    PageFacts,
    PageSummaryState,
    Update,
    Visibility,
    of_health,
    render,
    summary_of,
)
from tests.support.worlds import page_world
from tests.support.worlds.page_world import MONITORS, NOW, SECRET, leaves, nows

BADNESS = {
    "operational": 1,
    "maintenance": 2,
    "degraded": 3,
    "partial_outage": 4,
    "major_outage": 5,
}
any_facts = page_world.facts()


def public(facts: PageFacts) -> Page:
    return render(facts, Audience.PUBLIC)


def member(facts: PageFacts) -> Page:
    return render(facts, Audience.MEMBER)


def incidents_of(page: Page) -> list[Incident]:
    return [*page.active, *page.recent]


def is_bound(facts: PageFacts, incident: Incident) -> bool:
    """Returns whether the page shows the incident: it names a source of a component, or it names no
    source, belongs to the project of the page and was not opened automatically.
    """
    about = [one for one in (incident.monitor, incident.service) if one is not None]
    if about:
        return any(component.anchor in about for component in facts.components)
    return facts.project == incident.project and incident.source != "auto"


def public_updates(incident: Incident) -> list[Update]:
    return [
        one
        for one in incident.updates
        if one.public and (incident.external_key is None or one.by_person)
    ]


@given(st.lists(nows(), max_size=6))
@example([Now(ComponentStatus.NO_DATA, NoDataReason.PAUSED), Now(ComponentStatus.OPERATIONAL)])
def test_the_summary_is_the_worst_known_status_and_an_unmeasured_count(
    found: list[Now],
) -> None:
    summary = summary_of(found)
    known = [one.status.value for one in found if one.status.value in BADNESS]
    assert summary.unmeasured == len(found) - len(known)
    if not known:
        assert summary.status == "no_data"
        assert summary.state == ("no_data" if found else "empty")
        return
    assert BADNESS[summary.status] == max(BADNESS[status] for status in known)
    assert summary.state == ("operational" if set(known) == {"operational"} else "impaired")


@given(st.lists(nows(), max_size=6), st.integers(0, 6))
def test_an_unmeasured_component_does_not_improve_the_summary(found: list[Now], place: int) -> None:
    unknown = Now(ComponentStatus.NO_DATA, NoDataReason.NO_FRESH_RESULT)
    before = summary_of(found)
    after = summary_of([*found[:place], unknown, *found[place:]])
    assert after.unmeasured == before.unmeasured + 1
    assert after.status is before.status
    expected = PageSummaryState.NO_DATA if before.state is PageSummaryState.EMPTY else before.state
    assert after.state is expected


@given(any_facts)
def test_components_keep_their_facts_and_order(facts: PageFacts) -> None:
    for page in (public(facts), member(facts)):
        assert page.summary == summary_of(one.now for one in facts.components)
        for shown, fact in zip(page.components, facts.components, strict=True):
            assert (shown.uid, shown.name, shown.group) == (fact.uid, fact.name, fact.group)
            assert (shown.status, shown.reason) == (fact.now.status, fact.now.reason)
            assert shown.measured == fact.measured
            assert (shown.status is ComponentStatus.NO_DATA) == (shown.reason is not None)
            gone = fact.source is not ComponentSource.MANUAL and fact.anchor is None
            assert shown.unavailable == gone
            withheld = fact.measured is not None and fact.measured.figure.uptime_percent is None
            assert (shown.withheld is not None) == withheld


@given(any_facts)
def test_a_member_sees_all_bound_incidents(facts: PageFacts) -> None:
    bound = {one.uid: one for one in facts.incidents if is_bound(facts, one)}
    over = [one for one in bound.values() if one.status == "resolved"]
    page = member(facts)
    assert {one.uid: one for one in page.active} == {
        uid: one for uid, one in bound.items() if one.status != "resolved"
    }
    assert all(bound[one.uid] is one for one in incidents_of(page))
    assert len(page.recent) == min(len(over), 10)


@given(any_facts)
def test_the_public_sees_bound_incidents_with_public_updates(facts: PageFacts) -> None:
    shown = {one.uid for one in facts.incidents if is_bound(facts, one) and public_updates(one)}
    found = [one.uid for one in incidents_of(public(facts))]
    assert len(found) == len(set(found))
    assert set(found) == shown


@given(st.lists(st.tuples(page_world.instants, st.booleans(), st.booleans()), max_size=30))
def test_recent_incidents_are_the_ten_newest_with_a_flag_for_more(
    found: list[tuple[Instant, bool, bool]],
) -> None:
    """Each example has: the start, whether it is resolved, and whether it has a public update."""
    incidents = [
        begun(number, started_at, is_over=over, is_public=said)
        for number, (started_at, over, said) in enumerate(found)
    ]
    facts = replace(shop(outage("")), incidents=incidents)
    for page, audience in ((public(facts), {True}), (member(facts), {True, False})):
        past = [at for at, is_over, said in found if is_over and said in audience]
        now = [at for at, is_over, said in found if not is_over and said in audience]
        assert [one.started_at for one in page.recent] == sorted(past, reverse=True)[:10]
        assert [one.started_at for one in page.active] == sorted(now, reverse=True)
        assert page.recent_more == (len(past) > 10)
        assert {one.status for one in page.recent} <= {IncidentStatus.RESOLVED}
        assert IncidentStatus.RESOLVED not in {one.status for one in page.active}


@pytest.mark.parametrize(("many", "more"), [(9, False), (10, False), (11, True)])
def test_ten_recent_incidents_set_no_flag_for_more(many: int, more: bool) -> None:
    incidents = [begun(n, NOW, is_over=True, is_public=True) for n in range(many)]
    page = public(replace(shop(outage("")), incidents=incidents))
    assert (len(page.recent), page.recent_more) == (min(many, 10), more)


@given(any_facts)
def test_the_public_page_has_only_ids_of_components_and_incidents(facts: PageFacts) -> None:
    allowed = {one.uid for one in facts.components} | {one.uid for one in facts.incidents}
    ids = {leaf for leaf in leaves(public(facts)) if isinstance(leaf, UUID)}
    assert ids <= allowed


@given(any_facts)
def test_the_public_page_has_no_private_text(facts: PageFacts) -> None:
    texts = [leaf for leaf in leaves(public(facts)) if isinstance(leaf, str)]
    assert not [text for text in texts if SECRET in text]


@given(any_facts)
def test_private_data_does_not_influence_the_public_page(facts: PageFacts) -> None:
    """Private changes between two reads do not change the public page."""
    renamed = {uid: UUID(int=uid.int ^ 0xF00) for uid in (*MONITORS, *page_world.SERVICES)}

    def other(uid: UUID | None) -> UUID | None:
        return None if uid is None else renamed[uid]

    def otherwise(one: Incident) -> Incident:
        is_ours = one.source is IncidentSource.AUTO or one.external_key is not None
        tail = one.title.rpartition(" is ")[2]
        return replace(
            one,
            monitor=other(one.monitor),
            service=other(one.service),
            external_key=None if one.external_key is None else "another",
            seq=one.seq + 7,
            title=f"Another is {tail}" if is_ours else one.title,
            acknowledged_at=NOW,
            acknowledged_by=UUID(int=7),
            acknowledged_label="Another",
            escalation_step=9,
            last_escalated_at=NOW,
            updated_at=NOW,
            updates=[
                replace(said, uid=UUID(int=8), author="Another", body=said.body)
                for said in public_updates(one)
            ],
            postmortem=one.postmortem
            and replace(one.postmortem, uid=UUID(int=9), author="Another"),
        )

    components = [replace(one, anchor=other(one.anchor)) for one in facts.components]
    changed = replace(
        facts, components=components, incidents=[otherwise(one) for one in facts.incidents]
    )
    assert public(changed) == public(facts)


@given(any_facts)
def test_public_updates_keep_order_and_text(facts: PageFacts) -> None:
    given_ones = {one.uid: one for one in facts.incidents}
    for shown in incidents_of(public(facts)):
        said = public_updates(given_ones[shown.uid])
        assert [(one.seq, one.status, one.body, one.created_at) for one in shown.updates] == [
            (one.seq, one.status, one.body, one.created_at) for one in said
        ]
        assert shown.seq == said[-1].seq
        assert shown.updated_at == max(
            [said[-1].created_at, *([shown.resolved_at] if shown.resolved_at else [])]
        )


@given(any_facts)
def test_open_maintenance_is_shown_and_public_without_ids(
    facts: PageFacts,
) -> None:
    lasting = [one for one in facts.maintenance if one.over_at > NOW and one.components]
    assert sorted(map(repr, member(facts).maintenance)) == sorted(map(repr, lasting))
    shown = public(facts).maintenance
    assert {(one.starts_at, one.over_at, one.reason, tuple(one.components)) for one in shown} == {
        (one.starts_at, one.over_at, one.reason, tuple(one.components)) for one in lasting
    }
    assert len(set(shown)) == len(shown)
    for one in shown:
        assert (one.uid, one.project, one.monitor, one.created_at) == (None, None, None, None)
    for page in (public(facts), member(facts)):
        starts = [one.starts_at for one in page.maintenance]
        assert starts == sorted(starts)


@pytest.mark.parametrize("audience", Audience)
def test_maintenance_is_over_at_its_end(audience: Audience) -> None:
    facts = shop(outage(""))
    ends = [Instant(NOW - 1), NOW, Instant(NOW + 1)]
    planned = [
        Maintenance(
            uid=None,
            project=None,
            monitor=MONITORS[0],
            starts_at=Instant(NOW - MINUTE),
            over_at=end,
            reason="Index rebuild",
            created_at=NOW,
            components=[facts.components[0].uid],
        )
        for end in ends
    ]
    page = render(replace(facts, maintenance=planned), audience)
    assert [one.over_at for one in page.maintenance] == [NOW + 1]


def shop(incident: Incident) -> PageFacts:
    component = ComponentFacts(
        uid=UUID(int=1),
        name="Checkout",
        description="",
        group="",
        source=ComponentSource.MONITOR,
        anchor=MONITORS[0],
        now=Now(ComponentStatus.MAJOR_OUTAGE),
        measured=None,
        updated_at=NOW,
    )
    return PageFacts(
        slug="shop",
        title="Shop",
        visibility=Visibility.LISTED,
        project=page_world.PROJECTS[0],
        components=[component],
        incidents=[incident],
        maintenance=[],
        as_of=NOW,
    )


def begun(number: int, at: Instant, *, is_over: bool, is_public: bool) -> Incident:
    one = outage("checkout is down")
    return replace(
        one,
        uid=UUID(int=100 + number),
        started_at=at,
        status=IncidentStatus.RESOLVED if is_over else IncidentStatus.MONITORING,
        resolved_at=Instant(at + MINUTE) if is_over else None,
        updates=[replace(said, public=is_public) for said in one.updates],
    )


def outage(title: str) -> Incident:
    said = Update(
        uid=UUID(int=3),
        seq=1,
        status=IncidentStatus.INVESTIGATING,
        body="Our monitoring detected a problem. We are investigating.",
        public=True,
        author="",
        by_person=False,
        created_at=NOW,
    )
    return Incident(
        uid=UUID(int=2),
        project=page_world.PROJECTS[0],
        monitor=MONITORS[0],
        service=None,
        external_key=None,
        seq=1,
        title=title,
        status=IncidentStatus.INVESTIGATING,
        impact=IncidentImpact.MAJOR,
        source=IncidentSource.AUTO,
        started_at=Instant(NOW - MINUTE),
        resolved_at=None,
        acknowledged_at=None,
        acknowledged_by=None,
        acknowledged_label="",
        escalation_step=None,
        last_escalated_at=None,
        created_at=NOW,
        updated_at=NOW,
        updates=[said],
        postmortem=None,
    )


@pytest.mark.parametrize(
    ("title", "said"),
    [
        (down_title("checkout-prod-3 db-7.internal"), "Checkout is down"),
        (down_title("x" * 300), "Checkout is down"),
        ("checkout-prod-3 is degraded", "Checkout is degraded"),
        ("checkout-prod-3 is unknown", "Checkout may be affected"),
    ],
)
def test_an_automatic_outage_is_titled_with_the_component_name(title: str, said: str) -> None:
    facts = shop(outage(title))
    assert [one.title for one in public(facts).active] == [said]
    assert [one.title for one in member(facts).active] == [title]


def test_a_person_can_publish_an_update_of_an_external_alert() -> None:
    alert = replace(
        outage("InstanceDown db-7.internal"), source=IncidentSource.API, external_key="f1"
    )
    assert public(shop(alert)).active == []
    said = replace(alert.updates[0], seq=2, by_person=True, body="We are on it.")
    found = public(shop(replace(alert, updates=[*alert.updates, said]))).active
    assert [one.title for one in found] == [TITLE_OF_ALERT]
    assert [one.external_key for one in found] == [None]
    assert [[each.body for each in one.updates] for one in found] == [["We are on it."]]


@pytest.mark.parametrize(
    ("health", "said"),
    [
        (Health.HEALTHY, "operational"),
        (Health.DEGRADED, "degraded"),
        (Health.DOWN, "major_outage"),
        (Health.UNKNOWN, "no_data"),
        (None, "maintenance"),
    ],
)
def test_service_health_maps_to_a_component_status(health: Health | None, said: str) -> None:
    assert of_health(health).status == said
