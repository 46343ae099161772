"""The maintenance screen: active and planned maintenance, a preview before a change of the past,
and kept input."""

import re
from typing import Any
from uuid import uuid4

from leadline.http.maintenance.console.preview_table import service_lines
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant, to_datetime
from leadline.storage.maintenance.transactions.plan_maintenance import Plan, announce
from leadline.storage.maintenance.transactions.preview_services import Previewed, Unknown
from leadline.storage.services.rules.service_health import Durations
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

from ..oncall.test_oncall_screen import first_line, send, text_of
from ..support.worlds.service_history import lived


def path_of(api: Api) -> str:
    return f"/projects/{api.project}/maintenance"


async def seen(api: Api, who: str = "viewer", query: str = "") -> str:
    answer = await api.ask(who, "GET", path_of(api) + query)
    assert answer.status_code == 200
    return await text_of(answer)


async def announced(api: Api, from_us: int, to_us: int, **given: Any) -> Any:
    plan = Plan(starts_at=Instant(FROZEN_NOW + from_us), ends_at=Instant(FROZEN_NOW + to_us))
    plan = Plan(starts_at=plan.starts_at, ends_at=plan.ends_at, **given)
    async with api.pool.transaction("announce") as tx:
        return await announce(tx, api.editor, api.project, plan, None, 30)


async def many(api: Api) -> int:
    ((found,),) = await api.rows("select count(*) from maintenances where archived_at is null")
    return int(found)


def hidden(page: str) -> dict[str, str]:
    """The hidden fields of the confirmation form."""
    form = page[page.index('<form class="form"') :]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))


async def test_an_empty_page_explains_maintenance(api: Api) -> None:
    page = await seen(api)
    assert first_line(page) == "No active maintenance"
    assert "no alerts are sent" in page
    assert "?show=plan" not in page
    assert "?show=plan" in await seen(api, "editor")


async def test_the_form_is_a_screen_of_editors(api: Api) -> None:
    page = await seen(api, "editor", "?show=plan")
    assert first_line(page) == "Schedule maintenance"
    assert '<div class="save"><button class="btn main" name="act" value="plan">' in page
    page = await seen(api, "viewer", "?show=plan")
    assert first_line(page) == "No active maintenance"
    assert f'action="{path_of(api)}"' not in page
    assert first_line(await seen(api, "editor", "?show=other")) == "No active maintenance"


async def test_the_first_line_is_the_active_maintenance_and_the_next_follows(api: Api) -> None:
    monitor = await api.new_monitor(name="Till")
    await announced(api, 0, HOUR, monitor=monitor.uid, reason="New cables")
    await announced(api, DAY, DAY + HOUR)
    page = await seen(api)
    assert first_line(page) == "Till is in maintenance until Mon 5 January 01:00"
    assert "The next starts Tue 6 January 00:00, UTC." in page
    assert "New cables" in page
    assert "The whole project, Tue 6 January 00:00 to Tue 6 January 01:00" in page


async def test_maintenance_is_planned_once_however_often_the_form_is_sent(api: Api) -> None:
    monitor = await api.new_monitor(name="Till")
    form = {
        "act": "plan",
        "monitor": monitor.uid,
        "starts": "2026-01-06T08:00",
        "ends": "2026-01-06T09:30",
        "reason": "New cables",
    }
    for _ in range(2):
        assert (await send(api, path_of(api), form)).status_code == 303
    ((of, starts, ends),) = await api.rows(
        "select monitor, starts_at, ends_at from maintenances where archived_at is null"
    )
    assert (of, starts) == (monitor.id, FROZEN_NOW + DAY + 8 * HOUR)
    assert ends - starts == 90 * MINUTE


async def test_a_maintenance_without_a_begin_begins_now_and_once(api: Api) -> None:
    form = {"act": "plan", "starts": "", "ends": "2026-01-05T02:00"}
    for _ in range(2):
        assert (await send(api, path_of(api), form)).status_code == 303
    assert await api.rows("select starts_at from maintenances") == [(FROZEN_NOW,)]
    assert first_line(await seen(api)) == (
        "The whole project is in maintenance until Mon 5 January 02:00"
    )


async def test_a_recurring_maintenance_recurs_until_it_is_ended(api: Api) -> None:
    form = {
        "act": "plan",
        "starts": "2026-01-06T08:00",
        "ends": "2026-01-06T09:00",
        "again": "FREQ=WEEKLY",
        "zone": "Europe/Berlin",
        "reason": "Backups",
    }
    for wrong, told in (
        ({"zone": "Europe/Atlantis"}, "Time zone: is not an IANA time zone."),
        ({"starts": "2026-01-04T08:00"}, "Start: must not be in the past for a series."),
        ({"ends": "2026-02-06T09:00"}, "End: must be between"),
    ):
        answer = await send(api, path_of(api), {**form, **wrong})
        assert answer.status_code == 400
        page = await text_of(answer)
        assert told in page
        assert page.count('aria-invalid="true"') == 1
        assert '<details class="adv" open>' in page
    assert (await send(api, path_of(api), {**form, "again": "FREQ=SECONDLY"})).status_code == 400
    assert await many(api) == 0
    for _ in range(2):
        assert (await send(api, path_of(api), form)).status_code == 303
    assert await many(api) == 5
    page = await seen(api, "editor")
    assert '<b title="The whole project">The whole project</b>' in page
    assert '<td class="wide" title="every week">every week</td>' in page
    assert "by Europe/Berlin. Backups" in page
    ((uid,),) = await api.rows("select uid from maintenance_series")
    mill = f"/projects/{api.projects['acme/mill'][1]}/maintenance"
    assert (await send(api, mill, {"act": "end-series", "series": uid})).status_code == 404
    answer = await send(api, path_of(api), {"act": "end-series", "series": uid})
    assert answer.status_code == 303
    assert await many(api) == 0
    assert "Series</h2>" not in await seen(api)


async def test_an_error_is_shown_at_its_field_and_the_input_kept(api: Api) -> None:
    form = {"act": "plan", "starts": "2026-01-06T08:00", "ends": "2026-01-06T07:00", "reason": "R"}
    answer = await send(api, path_of(api), form)
    assert answer.status_code == 400
    page = await text_of(answer)
    assert "End: must be after Start." in page
    assert 'value="2026-01-06T08:00"' in page
    assert 'id="wrong-ends_at"' in page
    assert 'Fix 1 error below: <a href="#ends">' in page
    assert '<input id="ends"' in page
    page = await text_of(await send(api, path_of(api), {**form, "starts": "soon"}))
    assert "Start: must be a day and a time." in page
    page = await text_of(await send(api, path_of(api), {**form, "starts": "2025-01-06T08:00"}))
    assert "older results are deleted" in page
    assert await many(api) == 0


async def test_the_past_is_changed_only_after_its_preview(api: Api) -> None:
    await api.new_monitor()
    form = {"act": "plan", "starts": "2026-01-04T08:00", "ends": "2026-01-04T09:00", "reason": ""}
    answer = await send(api, path_of(api), form)
    assert answer.status_code == 200
    page = await text_of(answer)
    assert first_line(page) == "Announce maintenance of the past?"
    assert await many(api) == 0
    confirmed = hidden(page)
    assert confirmed["act"] == "confirm"
    # Another range than was shown is not what was agreed to.
    other = {**confirmed, "ends": "2026-01-04T10:00"}
    assert (await send(api, path_of(api), other)).status_code == 400
    assert await many(api) == 0
    page = await text_of(await send(api, path_of(api), form))
    assert (await send(api, path_of(api), hidden(page))).status_code == 303
    assert await many(api) == 1
    # And a second click of the same finds it done.
    assert (await send(api, path_of(api), hidden(page))).status_code == 303
    assert await many(api) == 1


async def test_an_active_maintenance_is_ended_and_a_planned_one_deleted(api: Api) -> None:
    on = await announced(api, 0, HOUR)
    coming = await announced(api, DAY, DAY + HOUR)
    for row in (on, coming):
        answer = await send(api, path_of(api), {"act": "end", "maintenance": row.uid})
        assert answer.status_code == 303
    assert first_line(await seen(api)) == "No active maintenance"
    answer = await send(api, path_of(api), {"act": "end", "maintenance": on.uid})
    assert "Already over: annul it" in await text_of(answer)


async def test_annulling_what_has_begun_is_shown_before_it_is_done(api: Api) -> None:
    form = {"act": "plan", "starts": "2026-01-04T08:00", "ends": "2026-01-04T09:00"}
    await send(api, path_of(api), hidden(await text_of(await send(api, path_of(api), form))))
    ((uid,),) = await api.rows("select uid from maintenances")
    page = await text_of(await send(api, path_of(api), {"act": "annul", "maintenance": uid}))
    assert first_line(page) == "Annul this maintenance?"
    assert await many(api) == 1
    assert (await send(api, path_of(api), hidden(page))).status_code == 303
    assert await many(api) == 0


async def test_the_form_cannot_change_another_project(api: Api) -> None:
    row = await announced(api, 0, HOUR)
    mill = f"/projects/{api.projects['acme/mill'][1]}/maintenance"
    for act in ("end", "annul"):
        answer = await send(api, mill, {"act": act, "maintenance": row.uid})
        assert answer.status_code == 404
    other = await api.new_monitor("acme/mill")
    form = {"act": "plan", "starts": "2026-01-06T08:00", "ends": "2026-01-06T09:00"}
    answer = await send(api, path_of(api), {**form, "monitor": other.uid})
    assert "Monitor: names no monitor of this project." in await text_of(answer)
    assert (await send(api, path_of(api), {**form, "monitor": "x"})).status_code == 400
    assert (await send(api, path_of(api), {"act": "x"})).status_code == 400
    assert await many(api) == 1


def previewed(
    name: str,
    before: Durations,
    after: Durations,
    reason: Unknown | None = None,
    *,
    projected: bool = False,
) -> Previewed:
    return Previewed(uuid4(), name, before, after, projected, reason)


def test_a_preview_shows_each_service_before_and_after_or_the_reason() -> None:
    hour = Durations(good_us=50 * MINUTE, bad_us=10 * MINUTE)
    gone = Durations(good_us=50 * MINUTE, excluded_us=10 * MINUTE)
    lines = service_lines(
        [
            previewed("Accounts", hour, hour),
            previewed("Checkout", hour, gone, projected=True),
            previewed("Zebra", hour, Durations(), Unknown.WALL_BUDGET),
        ]
    )
    assert [line.name for line in lines] == ["Checkout", "Zebra", "Accounts"]
    checkout, zebra, accounts = lines
    assert checkout.before.availability == "83%"
    assert checkout.before.note == "coverage 100%, down 10\u202fmin"
    assert checkout.after is not None
    assert checkout.after.availability == "100%"
    assert checkout.after.note == "coverage 100%, in maintenance 10\u202fmin"
    assert checkout.why == "only recorded time is shown"
    assert zebra.after is None
    assert "takes too long" in zebra.why
    assert not accounts.changes


async def test_the_preview_shows_the_time_of_each_service_before_and_after(api: Api) -> None:
    monitor = await api.new_monitor(name="Till")
    async with api.pool.transaction("begun") as tx:
        at = Instant(FROZEN_NOW - 3 * DAY)
        await tx.execute("update monitor_terms set from_at = at(%(at)s)", at=at)
    row = await lived(api, "Checkout", monitor.uid, hours=48)
    await lived(api, "Accounts", hours=48)
    form = {"act": "plan", "starts": "2026-01-04T08:00", "ends": "2026-01-04T09:00"}
    page = await text_of(await send(api, path_of(api), form))
    table = page[page.index("<tbody>") : page.index("</tbody>")]
    assert f"/services/{row.uid}" in table
    assert "100%" in table
    assert "in maintenance 60\u202fmin" in table
    assert "Accounts" not in table
    assert "Figures of 1 of 1 services change." in page


async def test_a_monitor_is_named_by_a_part_of_its_name(api: Api) -> None:
    monitor = await api.new_monitor(name="Till in the harbour")
    await api.new_monitor(name="Search")
    typed = {"act": "plan", "ends": "2030-01-01T00:00", "monitor": "harbour"}
    ends = to_datetime(Instant(FROZEN_NOW + HOUR)).strftime("%Y-%m-%dT%H:%M")
    answer = await send(api, path_of(api), {**typed, "ends": ends})
    assert answer.status_code == 303
    assert await api.rows("select monitor from maintenances") == [(monitor.id,)]
    answer = await send(api, path_of(api), {**typed, "ends": ends, "monitor": "nothing"})
    text = await text_of(answer)
    assert "Monitor: names no monitor of this project." in text
    assert 'value="nothing"' in text
