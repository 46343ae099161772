"""The pages of incidents: the first line is true, and forms do what the API does."""

import re
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from playwright.sync_api import expect

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.incidents.rules.incident import IncidentImpact, IncidentStatus
from leadline.storage.incidents.tables.incidents import lock_incident
from leadline.storage.notifications.transactions.enqueue_notifications import (
    Notification,
    enqueue_pages,
)
from tests.conftest import FROZEN_NOW
from tests.support.app.browser import PHONE
from tests.support.app.cast import Api
from tests.support.app.fixtures import Open
from tests.support.processes.daemon_process import Daemon


async def send(api: Api, path: str, who: str = "editor", **form: str) -> Any:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return await api.ask(who, "POST", path, data=urlencode(form).encode(), headers=headers)


async def seen(api: Api, path: str, who: str = "viewer", status: int = 200) -> str:
    answer = await api.ask(who, "GET", path)
    assert answer.status_code == status
    return str(await answer.get_data(as_text=True))


async def sent(api: Api, path: str, **form: str) -> str:
    """The page with the error of a refused form."""
    answer = await send(api, path, **form)
    assert answer.status_code == 400
    return str(await answer.get_data(as_text=True))


def first_line(text: str) -> str:
    return text.partition("<h1>")[2].partition("</svg>")[2].partition("</h1>")[0]


async def updates(api: Api, incident: UUID) -> list[tuple[str | None, str, bool]]:
    return await api.rows(
        "select u.status, u.body, u.public from incident_updates u join incidents i "
        "on i.org = u.org and i.id = u.incident where i.uid = %(uid)s order by u.seq",
        uid=incident,
    )


async def test_the_list_counts_open_incidents_and_shows_them_first(api: Api) -> None:
    path = f"/projects/{api.project}/incidents"
    assert first_line(await seen(api, path)) == "No incidents yet"
    first = await api.new_incident(title="Oldest")
    await api.new_incident(title="Bygone", status=IncidentStatus.RESOLVED)
    text = await seen(api, path)
    assert first_line(text) == "1 open incident, not acknowledged"
    assert "INC-1<" in text
    assert text.index("Oldest") < text.index("Bygone")
    await api.new_incident(title="Newest", impact=IncidentImpact.CRITICAL)
    text = await seen(api, path)
    assert first_line(text) == "2 open incidents, 2 not acknowledged"
    assert '<h1><svg class="mark down"' in text
    assert text.index("Newest") < text.index("Oldest") < text.index("Bygone")
    answer = await send(api, f"/incidents/{first}", act="acknowledge", back="list")
    assert answer.headers["Location"] == path
    text = await seen(api, path)
    assert first_line(text) == "2 open incidents, 1 not acknowledged"
    assert "Median time to acknowledge over 30 days" in text
    found = await seen(api, f"{path}?q=inc-2")
    assert "Bygone" in found
    assert "Oldest" not in found
    assert "Newest" in await seen(api, f"{path}?impact=critical")
    assert "No incidents match" in await seen(api, f"{path}?q=nothing")
    for show, there, gone in (("open", "Oldest", "Bygone"), ("resolved", "Bygone", "Oldest")):
        text = await seen(api, f"{path}?show={show}")
        assert there in text
        assert gone not in text
    for page in (path, f"/projects/{api.project}", f"/incidents/{first}"):
        nav = (await seen(api, page)).partition("<nav")[2].partition("</nav>")[0]
        assert '<span class="count bad">2<span class="vh"> open</span></span>' in nav, page


async def test_the_list_without_open_incidents_shows_since_when(api: Api) -> None:
    await api.new_incident(status=IncidentStatus.RESOLVED)
    text = await seen(api, f"/projects/{api.project}/incidents")
    assert first_line(text) == "No open incidents"
    assert "The latest incident was resolved 0" in text
    assert '<h1><svg class="mark up"' in text


@pytest.mark.parametrize("show", ["all", "open", "resolved"])
async def test_every_incident_is_on_exactly_one_page(api: Api, show: str) -> None:
    """Open incidents come first on every page; within each kind the newest come first."""
    over = {number for number in range(109) if number % 2}
    for number in range(109):
        status = IncidentStatus.RESOLVED if number in over else IncidentStatus.INVESTIGATING
        await api.new_incident(title=f"Incident number {number:03}", status=status)
    open_ones = sorted(set(range(109)) - over, reverse=True)
    wanted = {
        "all": open_ones + sorted(over, reverse=True),
        "open": open_ones,
        "resolved": sorted(over, reverse=True),
    }[show]
    seen_: list[int] = []
    path = f"/projects/{api.project}/incidents?show={show}"
    for page in range(1, 5):
        text = await seen(api, f"{path}&page={page}")
        found = [int(n) for n in re.findall(r">Incident number (\d+)<", text)]
        assert found == wanted[(page - 1) * 50 : page * 50]
        assert ('rel="next"' in text) is (page * 50 < len(wanted))
        assert ('rel="prev"' in text) is (page > 1 and found != [])
        seen_ += found
    assert seen_ == wanted
    assert "No more entries" in await seen(api, f"{path}&page=4")


async def test_an_editor_opens_an_incident_by_the_form_and_sees_errors(api: Api) -> None:
    path = f"/projects/{api.project}/incidents/new"
    monitor = (await api.new_monitor(name="Checkout")).uid
    form = {
        "about": "monitor",
        "impact": "major",
        "status": "identified",
        "monitor": "checkout",
        "body": "a\r\nb",
    }
    text = await sent(api, path, title="  ", **form)
    assert "Title must not be blank." in text
    assert 'value="checkout"' in text
    assert 'value="major" checked' in text
    assert ">\na\nb</textarea>" in text.replace("\r", "")
    answer = await send(api, path, title=" Checkout fails ", **form)
    assert answer.status_code == 303
    text = await seen(api, answer.headers["Location"])
    assert first_line(text) == "Checkout fails"
    assert f'<a href="/monitors/{monitor}">Checkout</a>' in text
    missing = {**form, "monitor": "Nothing"}
    assert "Monitor names no monitor of this project." in await sent(
        api, path, title="x", **missing
    )
    await sent(api, path, title="x", **{**form, "status": "gone"})


async def test_one_is_acknowledged_moved_noted_resolved_and_explained_by_forms(api: Api) -> None:
    uid = await api.new_incident(title="Checkout fails", body="We look.")
    path = f"/incidents/{uid}"
    text = await seen(api, path, "editor")
    assert "Not acknowledged." in text
    assert "Available once the incident is resolved." in text
    for act in (
        {"act": "acknowledge"},
        {"act": "update", "status": "identified", "body": "DNS.", "public": "true"},
        # The box is still checked, but a note for the team stays internal.
        {"act": "note", "status": "identified", "body": "Call Ann.", "public": "true"},
        {"act": "update", "status": "monitoring", "body": "Quietly."},
    ):
        assert (await send(api, path, **act)).status_code == 303, act
    text = await seen(api, path, "editor")
    assert "Acknowledged by editor after 0" in text
    assert 'value="acknowledge"' not in text
    assert 'value="investigating"' not in text
    assert 'value="monitoring" checked' in text
    await send(api, path, act="update", status="resolved", body="Well.", public="true")
    assert await updates(api, uid) == [
        ("investigating", "We look.", True),
        ("identified", "DNS.", True),
        (None, "Call Ann.", False),
        ("monitoring", "Quietly.", False),
        ("resolved", "Well.", True),
    ]
    text = await seen(api, path, "editor")
    assert "resolved after 0" in text
    assert 'name="status"' not in text
    await send(api, path, act="note", **{"for": "all"}, body="Seen.", public="true")
    await send(api, path, act="note", **{"for": "all"}, body="Unseen.")
    assert (await updates(api, uid))[-2:] == [(None, "Seen.", True), (None, "Unseen.", False)]
    assert "Save postmortem" in text
    await send(api, path, act="postmortem", body="It was DNS.\r\n\r\nAlways.")
    text = await seen(api, path)
    assert "It was DNS.\n\nAlways." in text
    assert "by editor." in text
    public, pages = await seen(api, f"{path}?show=public"), await seen(api, f"{path}?show=team")
    assert "DNS.</p>" in public
    assert "Call Ann." not in public
    assert "Quietly." not in public
    assert "Acknowledged</b>" in pages
    team = pages.partition("timeline-title")[2].partition("postmortem-title")[0]
    assert ">DNS.</p>" not in team
    assert "Call Ann." in team


@pytest.mark.parametrize(
    ("present", "form", "said"),
    [
        (
            IncidentStatus.MONITORING,
            {"status": "identified", "body": "kept"},
            "can only move forward",
        ),
        (
            IncidentStatus.RESOLVED,
            {"status": "resolved", "body": "kept"},
            "The incident is already resolved.",
        ),
        (
            IncidentStatus.IDENTIFIED,
            {"status": "identified", "body": ""},
            "Body is required if",
        ),
        (
            IncidentStatus.IDENTIFIED,
            {"status": "identified", "body": "kept\x07"},
            "control characters",
        ),
    ],
)
async def test_a_refused_update_shows_the_reason_and_keeps_the_typed_text(
    api: Api, present: IncidentStatus, form: dict[str, str], said: str
) -> None:
    uid = await api.new_incident(status=present)
    text = await sent(api, f"/incidents/{uid}", act="update", **form)
    assert said in text
    if form["body"]:
        assert "\nkept" in text
    assert len(await updates(api, uid)) == 1


async def test_a_viewer_sees_it_all_and_is_given_no_form(api: Api) -> None:
    uid = await api.new_incident(explained=True)
    for path in (f"/incidents/{uid}", f"/projects/{api.project}/incidents"):
        main = (await seen(api, path)).partition("<main")[2].partition("</main>")[0]
        assert 'method="post"' not in main
        assert "<button" not in main
    assert "It was DNS." in await seen(api, f"/incidents/{uid}")
    assert (await send(api, f"/incidents/{uid}", "viewer", act="note", body="x")).status_code == 403


async def test_recipients_and_deliveries_are_shown_without_addresses(api: Api) -> None:
    """The address of a webhook can contain a secret."""
    channel = await api.new_channel(name="Operators")
    await api.new_webhook()
    async with api.pool.transaction("address") as tx:
        await tx.execute("update webhooks set url = 'https://hook.test/canary-1?canary-2'")
    uid = await api.new_incident()
    async with api.pool.transaction("page") as tx:
        row = await lock_incident(tx, uid)
        assert row is not None
        ((key,),) = await tx.rows(
            "select id from notification_channels where uid = %(u)s", u=channel
        )
        page = Notification(
            event="incident.opened",
            status="down",
            severity="major",
            title="x",
            lines=(),
            why="",
            since=None,
            path=f"/incidents/{uid}",
        )
        await enqueue_pages(tx, row.org, row.project, uid, uid, "incident_event", [key], page)
    text = await seen(api, f"/incidents/{uid}", "editor")
    assert "Operators" in text
    assert "Webhook, hook.test" in text
    assert "canary" not in text
    assert "Pending, first attempt" in text

    async def outcome(**values: Any) -> str:
        given_ = ", ".join(f"{name} = %({name})s" for name in values)
        async with api.pool.transaction("outcome") as tx:
            await tx.execute(
                f"update outbox o set {given_} from destinations d "
                "where d.org = o.org and d.id = o.destination and d.channel is not null",
                **values,
            )
        page = await seen(api, f"/incidents/{uid}", "editor")
        return page.partition("told-title")[2]

    assert "1 delivered" in await outcome(status="delivered")
    failed = await outcome(status="pending", attempts=2, last_error="http_status 500")
    assert "2 attempts failed: http_status 500. Next attempt soon." in failed
    dead = await outcome(status="dead", attempts=24, last_error="timeout")
    assert "delivery failed" in dead
    assert "After 24 attempts: timeout." in dead


async def test_steps_of_an_escalation_are_in_the_timeline_with_missed_targets(api: Api) -> None:
    uid = await api.new_incident()
    for step, paged, lost in ((0, ["Ann"], []), (1, ["Bob"], ["Eve"]), (2, [], ["Eve"])):
        async with api.pool.transaction("step") as tx:
            await tx.execute(
                "insert into incident_pages (org, incident, step, at, paged, unreachable) "
                "select org, id, %(step)s, at(%(at)s), %(paged)s::text[], %(lost)s::text[] "
                "from incidents where uid = %(uid)s",
                step=step,
                at=Instant(FROZEN_NOW + step * SECOND),
                paged=paged,
                lost=lost,
                uid=uid,
            )
    text = await seen(api, f"/incidents/{uid}")
    told = text.partition("timeline-title")[2]
    for said in (
        "<b>Paged Ann</b>",
        "The monitor&#39;s channels.",
        "<b>Paged Bob</b>",
        "Step 1. Not reached: Eve.",
        "<b>No channel could be paged</b>",
        "Step 2. Not reached: Eve.",
    ):
        assert said in told, said
    assert told.index("No channel could be paged") < told.index("Paged Bob") < told.index("Opened")


@pytest.mark.needs("chromium")
def test_at_night_on_a_phone_without_scripts_one_takes_it_up_and_ends_it(
    open_page: Open, leadline: Daemon, project: str
) -> None:
    body = {"title": "Checkout fails at night", "impact": "critical"}
    made = leadline.api("POST", f"/projects/{project}/incidents", body)
    page = open_page(f"/projects/{project}/incidents", viewport=PHONE, scripts=False)
    page.get_by_role("link", name="Checkout fails at night").click()
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("main")).to_contain_text("Acknowledged by")
    page.get_by_role("radio", name="Resolved").check(force=True)
    page.get_by_label("Message").fill("A switch was replaced.")
    page.get_by_role("button", name="Publish update").click()
    expect(page.get_by_role("main")).to_contain_text("resolved after")
    page.get_by_label("What happened").fill("A switch died.")
    page.get_by_label("Publish", exact=True).check()
    page.get_by_role("button", name="Save postmortem").click()
    expect(page.get_by_role("main")).to_contain_text("Published")
    found = leadline.api("GET", f"/incidents/{made['id']}")
    assert (found["status"], found["seq"]) == ("resolved", 2)
    assert leadline.api("GET", f"/incidents/{made['id']}/postmortem")["body"] == "A switch died."


@pytest.mark.needs("chromium")
def test_keys_lead_to_the_incidents(open_page: Open, project: str) -> None:
    page = open_page(f"/projects/{project}/monitors/new")
    page.locator("main").focus()
    page.keyboard.press("g")
    page.keyboard.press("i")
    expect(page).to_have_url(f"{page.url.partition('/projects')[0]}/projects/{project}/incidents")


_TOLD_OUTSIDE = """
insert into outbox (org, uid, project, topic, destination, stream, thread, event, payload,
  status, last_error, ready, due_at, created_at, updated_at)
select d.org, gen_random_uuid(), o.project, o.topic, d.id, o.stream, o.thread, o.event, '{}',
  t.status, t.error, true, now(), now(), now()
from (select *, row_number() over (order by id) as n from destinations
    where subscriber is not null) d
  join (values (1, 'delivered', ''), (2, 'delivered', 'recipient_refused 550'),
    (3, 'pending', ''), (4, 'dead', 'timeout')) as t(n, status, error) using (n),
  (select * from outbox where thread = %(incident)s limit 1) o
"""


async def test_subscribers_are_counted_per_status_page(api: Api) -> None:
    page = await api.new_status_page(title="Harbour Goods")
    for _ in range(4):
        await api.new_subscriber(page)
    async with api.pool.transaction("confirm") as tx:
        await tx.execute("update subscribers set confirmed_at = created_at")
    incident = await api.new_incident()
    assert "No notifications were sent" in await seen(api, f"/incidents/{incident}")
    async with api.pool.transaction("tell") as tx:
        await tx.execute(_TOLD_OUTSIDE, incident=incident)
    text = await seen(api, f"/incidents/{incident}")
    assert "Subscribers of Harbour Goods" in text
    assert "1 sent, 1 pending" in text
    assert "1 address refused. 1 message failed." in text


async def test_a_postmortem_is_previewed_as_each_page_shows_it(api: Api) -> None:
    page = await api.new_status_page(title="Harbour status")
    incident = await api.new_incident(status=IncidentStatus.RESOLVED)
    path = f"/incidents/{incident}"
    typed = {"act": "preview_postmortem", "body": "A <b>cable</b> was cut."}
    answer = await send(api, path, **typed, public="on")
    text = str(await answer.get_data(as_text=True))
    shown = text.partition('id="outside-postmortem"')[2].partition("</form>")[0]
    assert "Harbour status" in shown
    assert "A &lt;b&gt;cable&lt;/b&gt; was cut." in shown
    assert "Postmortem" in shown
    text = str(await (await send(api, path, **typed)).get_data(as_text=True))
    shown = text.partition('id="outside-postmortem"')[2].partition("</form>")[0]
    assert "Not published: only members see it." in shown
    assert "Harbour status" not in shown
    assert await api.rows("select count(*) from postmortems") == [(0,)], page


async def test_the_form_shows_the_readers_of_an_incident_before_it_is_opened(api: Api) -> None:
    page = await api.new_status_page(title="Harbour status")
    other = await api.new_status_page(title="Other status")
    for _ in range(3):
        await api.new_subscriber(page)
    async with api.pool.transaction("confirm") as tx:
        await tx.execute("update subscribers set confirmed_at = created_at")
    component = str(await api.new_component(page, name="Payments"))
    path = f"/projects/{api.project}/incidents/new"
    form = {
        "about": "components",
        "component": component,
        f"state-{component}": "partial_outage",
        "title": "Payments fail",
        "impact": "major",
        "status": "investigating",
        "body": "We are investigating.",
        "public": "true",
    }
    answer = await send(api, path, act="preview", **form)
    text = str(await answer.get_data(as_text=True))
    shown = text.partition('id="outside"')[2].partition("</form>")[0]
    assert "Harbour status" in shown
    assert "Other status" not in shown
    assert "Affects: Payments." in shown
    assert "Up to 3 subscribers will be notified." in text
    assert await api.rows("select count(*) from incidents") == [(0,)]
    answer = await send(api, path, who="org_admin", act="open", **form)
    assert answer.status_code == 303
    assert await api.rows("select manual_status from status_components") == [("partial_outage",)]
    slugs = dict(await api.rows("select uid, slug from status_pages"))
    assert "Payments fail" in await seen(api, f"/status/{slugs[page]}", "nobody")
    assert "Payments fail" not in await seen(api, f"/status/{slugs[other]}", "nobody")


async def test_a_text_field_finds_objects_by_a_part_of_their_name(api: Api) -> None:
    for name in ("Checkout API", "Checkout page", "Search"):
        await api.new_monitor(name=name)
    path = f"/projects/{api.project}/pick?kind=monitor&q=check"
    text = await seen(api, path)
    assert text.count("<option") == 2
    assert "Search" not in text
    form = {"about": "monitor", "title": "x", "impact": "minor", "status": "investigating"}
    new = f"/projects/{api.project}/incidents/new"
    assert "matches several monitors" in await sent(api, new, monitor="check", **form)
    assert (await send(api, new, monitor="sea", **form)).status_code == 303


async def test_a_published_update_states_its_waiting_messages_and_is_undone(api: Api) -> None:
    page = await api.new_status_page(title="Harbour Goods", project=api.project)
    for _ in range(2):
        await api.new_subscriber(page)
    async with api.pool.transaction("confirm") as tx:
        await tx.execute("update subscribers set confirmed_at = created_at")
    path = f"/incidents/{await api.new_incident(body='We look.')}"
    answer = await send(api, path, act="update", status="identified", body="Oops.", public="true")
    assert answer.headers["Location"] == f"{path}?done=published"
    text = await seen(api, f"{path}?done=published", "editor")
    assert "Update published." in text
    assert "Up to 2 subscriber messages wait until then." in text
    assert text.count('value="undo"') == 1, "the toast has it"
    assert (await seen(api, path, "editor")).count('value="undo"') == 1, "and the page, without it"
    assert 'value="undo"' not in await seen(api, path)
    update = text.partition('name="update" value="')[2].partition('"')[0]
    answer = await send(api, path, act="undo", update=update)
    assert answer.headers["Location"] == f"{path}?done=undone"
    text = await seen(api, f"{path}?done=undone", "editor")
    assert "Update withdrawn. No subscriber gets it. The status stays." in text
    assert "can be withdrawn until" not in text
    assert "Identified" in text
    team = await seen(api, f"{path}?show=team", "editor")
    assert "Update withdrawn</b>, by editor" in team
    assert "Oops." in team
    assert "Oops." not in await seen(api, f"{path}?show=public")
    again = await sent(api, path, act="undo", update=update)
    assert "The update is not public any more." in again
    assert (await send(api, path, act="undo", update="x")).status_code == 404


_OUTAGE = """
insert into outages (org, uid, monitor, began_at, why, failed_condition, incident)
select i.org, gen_random_uuid(), %(monitor)s, i.created_at, 'http_status shop.example',
  '[STATUS] == 200 (503)', i.id
from incidents i where i.uid = %(incident)s
"""


async def test_the_first_failure_is_stated_in_words(api: Api) -> None:
    row = await api.new_monitor()
    incident = await api.new_incident()
    async with api.pool.transaction("outage") as tx:
        await tx.execute(_OUTAGE, monitor=row.id, incident=incident)
    said = "First failure: Unexpected HTTP status (shop.example)."
    answer = await api.ask("viewer", "GET", f"/incidents/{incident}")
    page = await answer.get_data(as_text=True)
    assert f"{said} Failed condition: <code>[STATUS] == 200 (503)</code>." in page
    answer = await api.ask("viewer", "GET", f"/monitors/{row.uid}")
    assert said in await answer.get_data(as_text=True)
