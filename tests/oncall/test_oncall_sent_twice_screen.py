"""Forms of incidents and of on-call with repeated, maximal and invalid input; an error is shown at
its field."""

import re
from typing import Any
from uuid import UUID, uuid4

import pytest

from leadline.storage.core.instant import HOUR, Instant
from leadline.storage.notifications.rules.notification import Notification, Topic
from leadline.storage.notifications.transactions.enqueue_notifications import enqueue_pages
from tests.conftest import FROZEN_NOW
from tests.oncall.test_oncall_screen import first_line, seen, send, text_of
from tests.support.app.cast import Api


async def override_of(api: Api, schedule: UUID, channel: UUID) -> None:
    path = f"/projects/{api.project}/on-call"
    form = {"act": "override", "schedule": schedule, "channel": channel}
    answer = await send(api, path, {**form, "from": "2026-01-04T00:00", "to": "2026-01-06T00:00"})
    assert answer.status_code == 303


async def test_an_override_s_channel_that_is_off_is_not_called_fine(api: Api) -> None:
    mara, tomas = await api.new_channel(name="Mara"), await api.new_channel(name="Tomás")
    await override_of(api, await api.new_schedule(mara), tomas)
    off = {"enabled": False}
    path = f"/api/v1/notification-channels/{tomas}"
    assert (await api.ask("editor", "PATCH", path, off)).status_code == 200
    page = await seen(api)
    assert first_line(page) == "Tomás is on call until Tuesday 00:00, but the channel is disabled"
    assert "Pages to it are not sent." in page


async def test_the_largest_policy_of_the_api_is_saved_by_its_form(api: Api) -> None:
    channels = [await api.new_channel() for _ in range(20)]
    path = f"/projects/{api.project}/escalation-policies/new"
    form: dict[str, Any] = {"name": "Everybody", "act": "save"}
    for step in range(20):
        form |= {f"after-{step}": step, f"targets-{step}": [str(uid) for uid in channels]}
    assert (await send(api, path, form)).status_code == 303
    assert await api.rows("select count(*) from escalation_targets") == [(400,)]


async def test_a_second_acknowledgement_by_click_has_no_effect(api: Api) -> None:
    incident = await api.new_incident()
    for _ in range(2):
        answer = await send(api, f"/incidents/{incident}", {"act": "acknowledge"})
        assert (answer.status_code, answer.location) == (303, f"/incidents/{incident}")


@pytest.mark.parametrize("field", ["from", "to"])
async def test_an_error_of_an_override_is_shown_at_its_field(api: Api, field: str) -> None:
    tomas = await api.new_channel(name="Tomás")
    schedule = await api.new_schedule(tomas)
    form = {"act": "override", "schedule": schedule, "channel": tomas}
    spans = {"from": "2026-01-05T09:00", "to": "2026-01-05T12:00"}
    spans[field] = {"from": "nonsense", "to": "2026-01-05T08:00"}[field]
    answer = await send(api, f"/projects/{api.project}/on-call", {**form, **spans})
    page = await text_of(answer)
    assert answer.status_code == 400
    (box,) = [line for line in page.splitlines() if f'id="{field}"' in line]
    assert 'aria-invalid="true"' in box
    assert f'aria-describedby="wrong-{field} hint-{field}"' in box
    assert f'id="wrong-{field}"' in box
    assert page.count('aria-invalid="true"') == 1


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)> \u202egnirts\u202c 🙈 {{7*7}}"


async def test_hostile_names_are_text_on_every_page(api: Api) -> None:
    channel = await api.new_channel(name=HOSTILE)
    schedule = await api.new_schedule(channel, name=HOSTILE, anchor_at=Instant(FROZEN_NOW - HOUR))
    await api.new_policy(schedule=schedule)
    monitor = await api.new_monitor(name=HOSTILE)
    await api.attach(monitor.uid, channel)
    incident = await api.new_incident(title=HOSTILE, body="[x](javascript:alert(1)) " + HOSTILE)
    home = f"/projects/{api.project}"
    for path in (
        home, f"{home}/on-call", f"{home}/incidents", f"{home}/channels", f"/incidents/{incident}",
        f"/monitors/{monitor.uid}", f"/monitors/{monitor.uid}/edit",
        f"/oncall-schedules/{schedule}/edit", f"{home}/escalation-policies/new",
    ):  # fmt: skip
        answer = await api.ask("editor", "GET", path)
        page = await text_of(answer)
        assert answer.status_code == 200, path
        for raw in ("<script>alert", "<img", 'href="javascript:'):
            assert raw not in page, (path, raw)


@pytest.mark.parametrize("text", ["%00", "%ED%A0%80", "%FF", "%C0%80"])
@pytest.mark.parametrize(
    "where", ["on-call", "incidents/new", "channels", "escalation-policies/new"]
)
async def test_invalid_text_is_refused_without_an_internal_error(
    api: Api, text: str, where: str
) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = f"act=add&title={text}&name={text}&schedule={text}&type=webhook".encode()
    path = f"/projects/{api.project}/{where}"
    answer = await api.ask("editor", "POST", path, data=body, headers=headers)
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "query", ["schedule=%00", "weeks=%00", "schedule=%ED%A0%80", "weeks=%D9%A1"]
)
async def test_an_invalid_query_still_shows_the_page(api: Api, query: str) -> None:
    assert first_line(await seen(api, f"?{query}")) == "No on-call schedule yet"


async def test_the_overview_links_to_the_number_of_open_incidents(api: Api) -> None:
    await api.new_monitor()
    home = f"/projects/{api.project}"
    quiet = await text_of(await api.ask("viewer", "GET", home))
    assert "are open" not in quiet
    assert "is open" not in quiet
    for said in ("1 incident is open", "2 incidents are open"):
        await api.new_incident()
        for path in (home, f"{home}/rows"):
            page = await text_of(await api.ask("viewer", "GET", path))
            assert f'<a href="{home}/incidents">{said}</a>.</p>' in page


async def test_an_incident_that_is_opened_by_two_clicks_is_one(api: Api) -> None:
    path = f"/projects/{api.project}/incidents/new"
    form = {"title": "Payments fail", "impact": "minor", "status": "investigating", "body": "So."}
    first, second = await send(api, path, form), await send(api, path, form)
    assert (first.status_code, second.status_code) == (303, 303)
    assert first.location == second.location
    other = await send(api, path, {**form, "body": "Others fail now."})
    assert other.location != first.location
    assert await api.rows("select count(*) from incidents") == [(2,)]
    # After the resolution an equal incident can be opened immediately.
    await send(api, first.location, {"act": "update", "status": "resolved", "body": "Over."})
    assert (await send(api, path, form)).location not in (first.location, other.location)


async def test_an_equal_incident_later_or_by_another_user_is_a_new_one(api: Api) -> None:
    path = f"/projects/{api.project}/incidents/new"
    form = {"title": "Payments fail", "impact": "minor", "status": "investigating", "body": ""}
    first = await send(api, path, form)
    other = await send(api, path, form, "org_admin")
    assert other.location != first.location
    async with api.pool.transaction("long ago") as tx:
        await tx.execute("update incidents set created_at = created_at - interval '1 minute'")
    assert (await send(api, path, form)).location not in (first.location, other.location)


@pytest.mark.parametrize("act", ["update", "note"])
async def test_an_update_sent_by_two_clicks_is_stored_once(api: Api, act: str) -> None:
    incident = await api.new_incident()
    form = {"act": act, "status": "identified", "body": "A disk is full.", "public": "true"}
    for _ in range(2):
        assert (await send(api, f"/incidents/{incident}", form)).status_code == 303
    said = "select count(*) from incident_updates where body = 'A disk is full.'"
    assert await api.rows(said) == [(1,)]
    more = {**form, "body": "Another one is, too."}
    assert (await send(api, f"/incidents/{incident}", more)).status_code == 303
    # An earlier text can be repeated after another update.
    assert (await send(api, f"/incidents/{incident}", form)).status_code == 303
    assert await api.rows(said) == [(2,)]


async def test_the_page_shows_the_channel_health_of_every_participant(api: Api) -> None:
    names = ["Quiet", "Works", "Fails", "Off", "Covers"]
    keys = {name: await api.new_channel(name=name, enabled=name != "Off") for name in names}
    await api.new_channel(name="Nobody counts on it")
    schedule = await api.new_schedule(keys["Quiet"], keys["Works"])
    await api.new_policy(channel=keys["Fails"])
    await api.new_policy(channel=keys["Off"])
    await override_of(api, schedule, keys["Covers"])
    await was_sent(api, keys["Works"], "delivered", failures=0)
    await was_sent(api, keys["Fails"], "delivered", failures=0)
    await was_sent(api, keys["Fails"], "dead", failures=3)
    page = await seen(api)
    table = page.partition('id="reach-title"')[2].partition("</table>")[0]
    rows = {
        re.sub(r"<[^>]*>", "", row.partition("</th>")[0]).strip(): row.partition("</th>")[2]
        for row in table.partition("<tbody>")[2].split("<tr>")[1:]
    }
    assert list(rows) == ["Covers", "Fails", "Off", "Quiet", "Works"]
    assert "3 consecutive failures" in rows["Fails"]
    assert "disabled" in rows["Off"]
    assert "delivered" in rows["Works"]
    for name in ("Covers", "Quiet"):
        assert rows[name].count("no recent delivery") == 2
    for name in ("Works", "Fails"):
        assert "<time" in rows[name]


async def was_sent(api: Api, channel: UUID, status: str, failures: int) -> None:
    """Inserts a page to the channel with the given outcome, and the state of its destination."""
    org, uid = api.orgs["acme"][0], uuid4()
    page = Notification(
        event="incident.opened", status="down", severity="major", title="Shop is down",
        lines=(), why="", since=None, path="/incidents/1",
    )  # fmt: skip
    async with api.pool.transaction("was_sent") as tx:
        key = await tx.value("select id from notification_channels where uid = %(c)s", c=channel)
        project = api.projects["acme/shop"][0]
        await enqueue_pages(tx, org, project, uid, uid, Topic.INCIDENT, [key], page)
        await tx.execute(
            "update outbox set status = %(status)s, updated_at = at(%(now)s) where stream = %(u)s",
            status=status,
            now=tx.now,
            u=uid,
        )
        await tx.execute(
            "update destinations set failures = %(failures)s where channel = %(key)s",
            failures=failures,
            key=key,
        )
