"""The forms of incidents warn if a public message contradicts the measurements, and never block."""

import re
from typing import Any
from uuid import UUID

import pytest
from playwright.sync_api import expect

from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.incidents.transactions.edit_incidents import IncidentDraft
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.services.transactions.declare_service import DeclarationDraft, declare
from leadline.storage.status_pages.transactions.open_public_incident import (
    AffectedComponent,
    open_public_incident,
)
from tests.conftest import FROZEN_NOW
from tests.support.app.browser import PHONE, make_monitor
from tests.support.app.cast import Api
from tests.support.app.fixtures import Open
from tests.support.processes.daemon_process import Daemon

from ..server.test_unknown_is_shown_screen import partitioned, result
from .test_incidents_screen import seen, send, sent, updates

_STATE = (
    "update monitor_states set status = %(status)s, since = at(%(since)s) where monitor = %(id)s"
)


async def turned(api: Api, row: MonitorRow, status: str, ago_us: int = HOUR) -> None:
    """The monitor has had a state for `ago_us`, and its newest result is 10 s old."""
    async with api.pool.transaction("clear") as tx:
        await tx.execute("delete from heartbeats where monitor = %(id)s", id=row.id)
    await result(api, row, 10 * SECOND, up=status == "up", status=status)
    async with api.pool.transaction("since") as tx:
        since = Instant(FROZEN_NOW - ago_us)
        await tx.execute(_STATE, status=status, since=since, id=row.id)


async def of_monitor(api: Api, name: str = "shop.example") -> tuple[MonitorRow, UUID]:
    await partitioned(api)
    row = await api.new_monitor(name=name, failure_threshold=1)
    await turned(api, row, "down")
    return row, await api.new_incident(title="Shop fails", monitor=row.uid, body="We look.")


async def of_service(api: Api) -> tuple[MonitorRow, UUID, UUID]:
    await partitioned(api)
    member = await api.new_monitor(name="Payments", failure_threshold=1)
    await turned(api, member, "down")
    service = await api.new_service(name="Checkout")
    async with api.pool.transaction("declare") as tx:
        draft = DeclarationDraft(expected_revision=0, monitors=[member.uid], sli=[member.uid])
        await declare(tx, api.editor, api.project, service, draft, 30)
        await tx.execute(
            "update service_revisions set governs_from = at(%(at)s), effective_at = at(%(at)s)",
            at=FROZEN_NOW - DAY,
        )
    return member, service, await api.new_incident(title="Checkout fails", service=service)


async def asked(api: Api, path: str, **form: str) -> str:
    """The page of a form that was not posted and is not wrong."""
    answer = await send(api, path, **form)
    assert answer.status_code == 200
    return str(await answer.get_data(as_text=True))


def warning(text: str) -> str:
    """The visible text of the warning that must be confirmed, empty without one."""
    block = text.partition('id="contradiction"')[2].partition("</div>")[0].partition(">")[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", block)).strip()


def preview(text: str) -> str:
    block = text.partition('id="outside"')[2].partition("readers-title")[0].partition(">")[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", block))


def key_in(text: str) -> str:
    return text.partition('name="warned" value="')[2].partition('"')[0]


@pytest.mark.parametrize("status", ["resolved", "monitoring"])
async def test_an_end_is_confirmed_while_the_monitor_is_down(api: Api, status: str) -> None:
    row, uid = await of_monitor(api)
    path = f"/incidents/{uid}"
    form = {"act": "update", "status": status, "body": "All <b>good</b>.", "public": "true"}
    text = await asked(api, path, **form)
    since = re.search(r"shop\.example is still down \(since ([^)]*)\)", warning(text))
    assert since, warning(text)
    assert f"The new status is {status}. The update is not posted yet." in warning(text)
    assert f'<a href="/monitors/{row.uid}">shop.example</a>' in text
    assert ">Post anyway</button>" in text
    assert "Publish update" not in text
    assert "All &lt;b&gt;good&lt;/b&gt;." in text
    assert f'value="{status}" checked' in text
    assert len(await updates(api, uid)) == 1
    answer = await send(api, path, **form, warned=key_in(text))
    assert answer.headers["Location"] == f"{path}?done=published"
    again = await send(api, path, **form, warned=key_in(text))
    assert again.status_code == 303, "a double click of the confirmation"
    assert await updates(api, uid) == [
        ("investigating", "We look.", True),
        (status, "All <b>good</b>.", True),
    ]


async def test_a_confirmation_counts_for_the_status_and_the_facts_that_were_shown(api: Api) -> None:
    member, service, uid = await of_service(api)
    path = f"/incidents/{uid}"
    form = {"act": "update", "body": "Better.", "public": "true"}
    text = await asked(api, path, **form, status="monitoring")
    assert warning(text).startswith("Checkout is still down. Payments is still down (since ")
    assert f'<a href="/services/{service}">Checkout</a>' in text
    read = key_in(text)
    text = await asked(api, path, **form, status="resolved", warned=read)
    assert "The new status is resolved." in warning(text)
    assert key_in(text) != read
    text = await asked(api, path, **form, status="resolved", warned="x")
    assert warning(text)
    # The facts end the contradiction: the update is posted at once.
    await turned(api, member, "up")
    answer = await send(api, path, **form, status="resolved")
    assert answer.status_code == 303
    assert (await updates(api, uid))[-1] == ("resolved", "Better.", True)


async def test_what_is_not_a_public_claim_of_the_end_is_posted_at_once(api: Api) -> None:
    _, uid = await of_monitor(api)
    path = f"/incidents/{uid}"
    for form in (
        {"act": "update", "status": "identified", "body": "DNS.", "public": "true"},
        {"act": "note", "status": "resolved", "body": "Almost.", "public": "true"},
        {"act": "update", "status": "identified", "body": "Quietly."},
    ):
        assert (await send(api, path, **form)).status_code == 303, form
    # The API is for programs, and warns of nothing.
    answer = await api.ask(
        "editor", "POST", f"/api/v1{path}/updates", {"status": "resolved", "body": "Over."}
    )
    assert answer.status_code == 201
    assert await send(api, path, act="note", **{"for": "all"}, body="Seen.", public="true")
    assert [status for status, _, _ in await updates(api, uid)] == [
        "investigating",
        "identified",
        None,
        "identified",
        "resolved",
        None,
    ]


async def test_a_status_without_a_public_message_is_compared_too(api: Api) -> None:
    """Status pages show it, although they do not show the message."""
    _, uid = await of_monitor(api)
    form = {"act": "update", "status": "resolved", "body": "Quietly."}
    text = await asked(api, f"/incidents/{uid}", **form)
    assert "The new status is resolved. The update is not posted yet." in warning(text)
    answer = await send(api, f"/incidents/{uid}", **form, warned=key_in(text))
    assert answer.status_code == 303
    assert (await updates(api, uid))[-1] == ("resolved", "Quietly.", False)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("stale", "State unknown: shop.example."),
        ("paused", "State unknown: shop.example."),
        ("never", "State unknown: shop.example."),
        ("maintenance", ""),
        ("up", ""),
    ],
)
async def test_an_unknown_state_is_named_and_needs_no_confirmation(
    api: Api, state: str, said: str
) -> None:
    await partitioned(api)
    row = await api.new_monitor(name="shop.example", failure_threshold=1)
    uid = await api.new_incident(monitor=row.uid)
    if state == "stale":
        await result(api, row, HOUR, up=False, status="down")
    elif state != "never":
        await turned(api, row, "up" if state == "up" else "down")
    if state == "paused":
        answer = await api.ask("editor", "PATCH", f"/api/v1/monitors/{row.uid}", {"enabled": False})
        assert answer.status_code == 200
    if state == "maintenance":
        await api.new_maintenance()
        async with api.pool.transaction("begin") as tx:
            begun = Instant(FROZEN_NOW - MINUTE)
            await tx.execute("update maintenances set starts_at = at(%(at)s)", at=begun)
    path = f"/incidents/{uid}"
    form = {"status": "resolved", "body": "Over.", "public": "true"}
    shown = preview(await asked(api, path, act="preview", **form))
    assert "is still down" not in shown
    assert ("State unknown: shop.example." in shown) is bool(said)
    assert (await send(api, path, act="update", **form)).status_code == 303


async def test_investigating_is_confirmed_if_all_has_been_up(api: Api) -> None:
    row, uid = await of_monitor(api)
    path = f"/incidents/{uid}"
    form = {"act": "update", "status": "investigating", "body": "Still on it.", "public": "true"}
    await turned(api, row, "up", 15 * MINUTE - 1)
    assert (await send(api, path, **form)).status_code == 303
    await turned(api, row, "up", 15 * MINUTE)
    form["body"] = "On it."
    text = await asked(api, path, **form)
    assert warning(text).startswith("shop.example has been up (since ")
    assert "The new status is investigating." in warning(text)
    assert (await send(api, path, **form, warned=key_in(text))).status_code == 303
    assert [body for _, body, _ in await updates(api, uid)] == [
        "We look.",
        "Still on it.",
        "On it.",
    ]


async def test_the_screen_states_the_facts_before_anything_is_sent(api: Api) -> None:
    _, uid = await of_monitor(api)
    assert "is still down" not in await seen(api, f"/incidents/{uid}", "editor")
    confirmed = key_in(
        await asked(api, f"/incidents/{uid}", act="update", status="monitoring", body="x")
    )
    await send(
        api, f"/incidents/{uid}", act="update", status="monitoring", body="x", warned=confirmed
    )
    text = await seen(api, f"/incidents/{uid}", "editor")
    assert "shop.example is still down (since " in preview(text)
    assert "Post anyway" not in text
    assert 'role="alert"' not in text
    assert "is still down" not in await seen(api, f"/incidents/{uid}", "viewer")
    answer = await send(api, f"/incidents/{uid}", act="preview", status="resolved", body="x")
    internal = str(await answer.get_data(as_text=True))
    assert "is still down" in preview(internal)


async def test_an_update_that_cannot_be_posted_shows_its_error_and_no_warning(api: Api) -> None:
    _, uid = await of_monitor(api)
    form = {"act": "update", "status": "resolved", "public": "true"}
    text = await sent(api, f"/incidents/{uid}", **form, body="x" * 10_001)
    assert "must be at most 10000 characters" in text
    assert not warning(text)
    text = await sent(api, f"/incidents/{uid}", **form, body="a\x07")
    assert "control characters" in text


async def opened(api: Api, uid: UUID, components: list[UUID], **given: Any) -> UUID:
    draft = IncidentDraft(title="Some of it fails", **given)
    async with api.pool.transaction("open") as tx:
        named = [AffectedComponent(one) for one in components]
        return (await open_public_incident(tx, api.admin, uid, draft, named)).uid


async def test_components_count_with_their_object_and_manual_ones_are_unknown(api: Api) -> None:
    row, _ = await of_monitor(api, "Payments API")
    page = await api.new_status_page()
    bound = await api.new_component(page, name="Payments", monitor=row.uid)
    manual = await api.new_component(page, name="Phone support")
    uid = await opened(api, api.project, [bound, manual])
    form = {"status": "resolved", "body": "Over.", "public": "true"}
    text = await asked(api, f"/incidents/{uid}", act="update", **form)
    assert "Payments API is still down" in warning(text)
    assert "State unknown: Phone support." in warning(text)
    # A problem that is not measured is investigated while the measured part is up.
    await turned(api, row, "up")
    form = {"status": "investigating", "body": "On it.", "public": "true"}
    assert (await send(api, f"/incidents/{uid}", act="update", **form)).status_code == 303


async def test_an_object_of_another_project_is_not_named(api: Api) -> None:
    await partitioned(api)
    hidden = await api.new_monitor("acme/mill", name="Mill internals", failure_threshold=1)
    await turned(api, hidden, "down")
    page = await api.new_status_page(project=None)
    component = await api.new_component(page, name="Flour", monitor=hidden.uid)
    uid = await opened(api, api.project, [component])
    form = {"status": "resolved", "body": "Over.", "public": "true"}
    text = await asked(api, f"/incidents/{uid}", act="preview", **form)
    assert "State unknown: Flour." in preview(text)
    assert "Mill internals" not in text
    assert str(hidden.uid) not in text
    assert (await send(api, f"/incidents/{uid}", act="update", **form)).status_code == 303


async def test_the_form_of_a_new_incident_asks_too(api: Api) -> None:
    row, _ = await of_monitor(api)
    path = f"/projects/{api.project}/incidents/new"
    form = {
        "about": "monitor",
        "monitor": "shop.example",
        "title": "It <i>was</i> down",
        "impact": "minor",
        "status": "resolved",
        "body": "Over.",
        "public": "true",
    }
    text = await asked(api, path, act="preview", **form)
    assert "shop.example is still down" in preview(text)
    assert "Post anyway" not in text
    text = await asked(api, path, act="open", **form)
    assert "shop.example is still down" in warning(text)
    assert warning(text).endswith("The new status is resolved. The incident is not open yet.")
    assert "It &lt;i&gt;was&lt;/i&gt; down" in text
    assert ">Post anyway</button>" in text
    assert len(await api.rows("select 1 from incidents")) == 1
    assert "Title must not be blank." in await sent(api, path, act="open", **{**form, "title": " "})
    internal = {name: value for name, value in form.items() if name != "public"}
    assert (await send(api, path, act="open", **internal)).status_code == 303
    answer = await send(api, path, act="open", **form, warned=key_in(text))
    assert answer.status_code == 303
    await turned(api, row, "up")
    new = {**form, "status": "investigating", "title": "Slow"}
    text = await asked(api, path, act="open", **new)
    assert "shop.example has been up" in warning(text)
    assert (await send(api, path, act="open", **new, warned=key_in(text))).status_code == 303
    statuses = await api.rows("select status from incidents order by id")
    assert [status for (status,) in statuses] == [
        IncidentStatus.INVESTIGATING,
        IncidentStatus.RESOLVED,
        IncidentStatus.RESOLVED,
        IncidentStatus.INVESTIGATING,
    ]


async def test_many_objects_are_counted_and_five_are_named(api: Api) -> None:
    await partitioned(api)
    page = await api.new_status_page()
    named, hostile = [], "\u202e<script>\u0338" + "x" * 150
    for n in range(7):
        row = await api.new_monitor(name=f"{n} {hostile}", failure_threshold=1)
        await turned(api, row, "down")
        named.append(await api.new_component(page, monitor=row.uid))
    uid = await opened(api, api.project, named)
    form = {"act": "update", "status": "resolved", "body": "Over.", "public": "true"}
    text = await asked(api, f"/incidents/{uid}", **form)
    assert warning(text).count("is still down") == 5
    assert "2 more. The new status is resolved." in warning(text)
    assert "<script>\u0338" not in text


@pytest.mark.needs("chromium")
@pytest.mark.soak
def test_on_a_phone_without_scripts_the_warning_is_read_and_the_update_posted_anyway(
    open_page: Open, leadline: Daemon, project: str
) -> None:
    given = {"name": "shop.example", "failure_threshold": 1, "auto_incident": False}
    monitor = make_monitor(leadline, project, "http://127.0.0.1:1/", **given)
    made = leadline.api(
        "POST", f"/projects/{project}/incidents", {"title": "Shop fails", "monitor_id": monitor}
    )
    watch = open_page(f"/monitors/{monitor}")
    expect(watch.get_by_role("heading", level=1)).to_contain_text("is down")
    page = open_page(f"/incidents/{made['id']}", viewport=PHONE, scripts=False)
    page.get_by_role("radio", name="Resolved").check(force=True)
    page.get_by_label("Message").fill("It works again.")
    page.get_by_role("button", name="Publish update").click()
    fact = page.get_by_role("alert")
    expect(fact).to_contain_text("shop.example is still down (since ")
    expect(fact).to_be_focused()
    expect(fact).to_be_in_viewport()
    page.get_by_role("button", name="Post anyway").click()
    expect(page.get_by_role("main")).to_contain_text("resolved after")
    found = leadline.api("GET", f"/incidents/{made['id']}/updates")
    assert [update["body"] for update in found] == ["", "It works again."]


@pytest.mark.needs("chromium")
def test_the_preview_shows_the_warning_while_the_user_chooses(
    open_page: Open, leadline: Daemon, project: str
) -> None:
    given = {"name": "search.example", "failure_threshold": 1, "auto_incident": False}
    monitor = make_monitor(leadline, project, "http://127.0.0.1:1/", **given)
    made = leadline.api(
        "POST", f"/projects/{project}/incidents", {"title": "Search fails", "monitor_id": monitor}
    )
    watch = open_page(f"/monitors/{monitor}")
    expect(watch.get_by_role("heading", level=1)).to_contain_text("is down")
    page = open_page(f"/incidents/{made['id']}")
    shown = page.locator("#outside .fact")
    expect(shown).to_have_count(0)
    page.get_by_text("Monitoring", exact=True).click()
    expect(shown).to_contain_text("search.example is still down")
    # Status pages show the status without the message.
    page.get_by_label("Publish to the status pages").uncheck()
    expect(shown).to_contain_text("search.example is still down")
    page.get_by_text("Identified", exact=True).click()
    expect(shown).to_have_count(0)


@pytest.mark.parametrize("act", ["preview", "open"])
async def test_a_component_of_another_project_stays_unseen(api: Api, act: str) -> None:
    """Neither its name nor its page, whatever the form contains."""
    mill = api.projects["acme/mill"][1]
    page = await api.new_status_page(title="Zzmillpage", project=mill)
    zzfurnace = await api.new_component(page, name="Zzfurnace")
    own = await api.new_component(name="Zzown")
    form = {
        "act": act,
        "about": "components",
        "title": "Fire",
        "status": "resolved",
        "impact": "minor",
        "body": "It burns.",
        "public": "on",
    }
    path = f"/projects/{api.project}/incidents/new"
    answer = await send(api, path, "shopkeeper", **form, component=str(zzfurnace))
    text = await answer.get_data(as_text=True)
    assert "Zzmillpage" not in text
    assert "Zzfurnace" not in text
    if act == "open":
        assert answer.status_code == 400
        assert "names a component of another project" in text
    else:
        text = await asked(api, path, **form, component=str(own))
        assert "Zzown" in preview(text) + warning(text)
