"""Support hours: incidents of low urgency wait for them, and severity `page` never does."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.incidents.transactions.escalate_incident import escalate_if_due
from leadline.storage.services.rules.support_hours import opens_at
from tests.conftest import FROZEN_NOW
from tests.oncall.test_oncall_api import call, ladder, policies
from tests.support.app.gating import Gated

# Monday to Friday in Berlin; FROZEN_NOW is Monday 01:00 there.
HOURS = {
    "timezone": "Europe/Berlin",
    "windows": [{"weekdays": ["mon", "tue", "wed", "thu", "fri"], "from": "09:00", "to": "17:00"}],
}
OPENS = Instant(FROZEN_NOW + 8 * HOUR)


class Desk:
    """A service with support hours and a policy of two steps, at 0 and 10 minutes."""

    def __init__(self, gated: Gated) -> None:
        self.gated = gated
        self.api = gated.api

    async def begin(self) -> None:
        first, second = await self.api.new_channel(name="one"), await self.api.new_channel()
        body = ladder((0, [("channel", first)]), (600, [("channel", second)]))
        policy = await call(self.api, "POST", policies(self.api), body, 201)
        self.service = await self.api.new_service(escalation_policy=policy["id"])
        answer = await call(self.api, "PUT", self.path, HOURS)
        assert answer == HOURS

    @property
    def path(self) -> str:
        return f"/projects/{self.api.project}/services/{self.service}/support-hours"

    async def incident(self, impact: str) -> UUID:
        body = {"title": "Slow", "impact": impact, "service_id": str(self.service)}
        made = await call(self.api, "POST", f"/projects/{self.api.project}/incidents", body, 201)
        return UUID(made["id"])

    async def run(self, incident: UUID, at: Instant) -> list[str]:
        """Escalates the incident if it is due, and returns the paged channels."""
        self.gated.clock.now = at
        async with self.api.pool.transaction("escalate") as tx:
            await escalate_if_due(tx, incident)
        rows = await self.api.rows(
            "select unnest(p.paged) from incident_pages p join incidents i"
            " on i.org = p.org and i.id = p.incident where i.uid = %(uid)s order by p.at",
            uid=incident,
        )
        return [name for (name,) in rows]


@pytest.fixture
async def desk(gated: Gated) -> Desk:
    made = Desk(gated)
    await made.begin()
    return made


async def test_a_minor_incident_waits_for_the_support_hours(desk: Desk) -> None:
    incident = await desk.incident("minor")
    assert await desk.run(incident, Instant(FROZEN_NOW + MINUTE)) == []
    assert await desk.run(incident, Instant(OPENS - 1)) == []
    notes = await desk.api.rows("select body from incident_updates where status is null")
    text = "Outside the support hours: the escalation waits until Monday 5 January 2026, 09:00"
    text += " (Europe/Berlin)."
    assert notes == [(text,)]
    answer = await desk.api.ask("viewer", "GET", f"/incidents/{incident}")
    shown = await answer.get_data(as_text=True)
    assert "waits: for the end of a mute or for the support hours of the service" in shown
    assert await desk.run(incident, OPENS) == ["one"]
    # The second step keeps its distance to the first.
    assert await desk.run(incident, Instant(OPENS + 9 * MINUTE)) == ["one"]
    assert len(await desk.run(incident, Instant(OPENS + 10 * MINUTE))) == 2


@pytest.mark.parametrize("impact", ["major", "critical"])
async def test_a_page_never_waits(desk: Desk, impact: str) -> None:
    incident = await desk.incident(impact)
    assert await desk.run(incident, Instant(FROZEN_NOW + MINUTE)) == ["one"]


async def test_a_waiting_incident_pages_when_its_hours_are_removed(desk: Desk) -> None:
    incident = await desk.incident("minor")
    assert await desk.run(incident, Instant(FROZEN_NOW + MINUTE)) == []
    none: dict[str, Any] = {"timezone": "", "windows": []}
    assert await call(desk.api, "PUT", desk.path, none) == none
    assert await desk.run(incident, Instant(FROZEN_NOW + 2 * MINUTE)) == ["one"]


async def test_a_ticket_destination_receives_it_at_all_hours(desk: Desk) -> None:
    await desk.api.new_channel(name="tickets")
    async with desk.api.pool.transaction("tickets") as tx:
        await tx.execute("update notification_channels set takes_tickets = name = 'tickets'")
    incident = await desk.incident("minor")
    assert await desk.run(incident, Instant(FROZEN_NOW + MINUTE)) == ["tickets"]


async def test_faults_and_roles(desk: Desk) -> None:
    wrong = {**HOURS, "timezone": "Mars/Olympus"}
    answer = await call(desk.api, "PUT", desk.path, wrong, 400)
    assert answer == {"error": "timezone: is not an IANA time zone"}
    await call(desk.api, "PUT", desk.path, HOURS, 403, who="viewer")
    shown = await call(
        desk.api, "GET", f"/projects/{desk.api.project}/services/{desk.service}", who="viewer"
    )
    assert shown["service"]["support_hours"] == HOURS


async def test_the_form_of_alerting_sets_them_and_the_screen_shows_them(desk: Desk) -> None:
    path = f"/services/{desk.service}/alerting"
    page = await (await desk.api.ask("editor", "GET", path)).get_data(as_text=True)
    assert "mon-fri 09:00-17:00</textarea>" in page
    screen = await desk.api.ask("viewer", "GET", f"/services/{desk.service}")
    shown = await screen.get_data(as_text=True)
    assert "Support hours: mon-fri 09:00-17:00 (Europe/Berlin)." in shown


@given(st.integers(0, 14 * 24 * 60))
def test_the_next_opening_is_the_first_open_minute(minute: int) -> None:
    windows = ["mon,tue,wed,thu,fri 09:00-17:00", "sat 10:00-12:00"]
    now = Instant(FROZEN_NOW + minute * MINUTE)

    def is_open(at: int) -> bool:
        weekday, clock = at // DAY % 7, at % DAY // MINUTE
        weekday = (weekday + 3) % 7
        return (540 <= clock < 1_020) if weekday < 5 else weekday == 5 and 600 <= clock < 720

    found = opens_at("", windows, now)
    if is_open(now):
        assert found is None
    else:
        assert found is not None
        later = next(at for at in range(now, now + 4 * DAY, MINUTE) if is_open(at))
        assert found == later
    assert opens_at("", [], now) is None
