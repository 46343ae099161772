"""The global silence in the API and the console: set, read, refused and shown."""

import re
from typing import Any

from leadline.storage.core.instant import MINUTE, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import call

PATH = "/settings/alerting"
UNTIL = to_text(Instant(FROZEN_NOW + 10 * MINUTE))


async def put(api: Api, status: int = 200, **silence: Any) -> Any:
    body = {"global_silence": silence}
    return await call(api, "PUT", PATH, body, status, who="global_admin")


async def text(api: Api, who: str, path: str) -> str:
    shown: str = await (await api.ask(who, "GET", path)).get_data(as_text=True)
    return shown


async def test_a_silence_is_returned_and_can_be_written_back(api: Api) -> None:
    found = await call(api, "GET", PATH, who="global_admin")
    assert found == {"configured": False, "global_silence": {"enabled": False}}
    set_ = await put(api, enabled=True, until=UNTIL)
    author = {"muted_by": "global_admin", "muted_at": to_text(FROZEN_NOW)}
    expected = {"enabled": True, "until": UNTIL, **author}
    assert set_ == {"configured": True, "global_silence": expected}
    assert await call(api, "GET", PATH, who="global_admin") == set_
    assert await call(api, "PUT", PATH, set_, who="global_admin") == set_
    assert await put(api, enabled=True) == {
        "configured": True,
        "global_silence": {"enabled": True, **author},
    }
    lifted = await call(api, "PUT", PATH, {}, who="global_admin")
    assert lifted == {"configured": True, "global_silence": {"enabled": False}}


async def test_an_expired_silence_is_disabled_and_can_be_written_back(api: Api) -> None:
    await put(api, enabled=True, until=UNTIL)
    async with api.pool.transaction("pass") as tx:
        await tx.execute(
            "update settings set value = jsonb_set(value, '{until}', to_jsonb(%(past)s::bigint))"
            " where name = 'alerting'",
            past=FROZEN_NOW - MINUTE,
        )
    over = await call(api, "GET", PATH, who="global_admin")
    past = to_text(Instant(FROZEN_NOW - MINUTE))
    assert over == {"configured": True, "global_silence": {"enabled": False, "until": past}}
    assert await call(api, "PUT", PATH, over, who="global_admin") == over


async def test_a_mute_has_reason_author_and_time_until_it_is_lifted(api: Api) -> None:
    given: dict[str, Any] = {"enabled": True, "until": UNTIL, "reason": "  network\nchange "}
    muted = (await put(api, **given))["global_silence"]
    assert muted["reason"] == "network change"
    assert muted["muted_at"] == to_text(FROZEN_NOW)
    # Author and time of a request are ignored. An equal setting keeps the stored ones.
    async with api.pool.transaction("rename") as tx:
        await tx.execute(
            "update settings set value = jsonb_set(value, '{by}', '\"Mara\"')"
            " where name = 'alerting'"
        )
    same = {**muted, "muted_by": "Eve", "muted_at": UNTIL}
    assert (await put(api, **same))["global_silence"] == {**muted, "muted_by": "Mara"}
    changed = (await put(api, **{**same, "reason": "another"}))["global_silence"]
    assert changed == {**muted, "reason": "another"}
    found = await api.rows("select target from audit_entries order by id")
    start = f"settings:alerting silenced=True until={UNTIL} reason="
    assert found == [(f"{start}network change",), (f"{start}another",)]
    refused = await put(api, 400, **{**given, "reason": "x" * 201})
    assert refused["error"].startswith("global_silence.reason: ")
    lifted = await put(api, enabled=False, reason="not needed", muted_by="Eve")
    assert lifted["global_silence"] == {"enabled": False}
    (row,) = await api.rows("select value from settings where name = 'alerting'")
    assert (row[0]["reason"], row[0]["by"], row[0]["set_at"]) == ("", "", None)


async def test_a_mute_of_an_earlier_version_has_no_author(api: Api) -> None:
    await put(api, enabled=True, until=UNTIL, reason="gone")
    async with api.pool.transaction("before") as tx:
        await tx.execute(
            "update settings set value = value - 'reason' - 'by' - 'set_at' where name = 'alerting'"
        )
    found = await call(api, "GET", PATH, who="global_admin")
    assert found["global_silence"] == {"enabled": True, "until": UNTIL}
    shown = await text(api, "viewer", f"/projects/{api.project}")
    assert "All alerts are muted until 00:10:00 UTC.</span>" in shown
    assert "Alerts are muted until 00:10:00 UTC.</p>" in await text(
        api, "global_admin", "/admin/silence"
    )


async def test_the_banner_names_author_and_reason(api: Api) -> None:
    await put(api, enabled=True, until=UNTIL, reason="<b>\u202enetwork")
    for who, page in (("viewer", f"/projects/{api.project}"), ("global_admin", "/profile")):
        shown = await text(api, who, page)
        assert (
            "All alerts are muted until 00:10:00 UTC, since 00:00:00 UTC, by"
            " <bdi>global_admin</bdi>: <bdi>&lt;b&gt;\u202enetwork</bdi>.</span>" in shown
        )
    shown = await text(api, "global_admin", "/admin/silence")
    assert "by <b><bdi>global_admin</bdi></b> at 00:00:00 UTC: <bdi>&lt;b&gt;" in shown
    assert 'value="&lt;b&gt;\u202enetwork"' in shown


async def test_the_form_requires_a_reason_and_keeps_its_values(api: Api) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for reason, wrong in (("", "must not be empty"), ("x" * 201, "at most 200 characters")):
        body = f"act=silence&for=7200&until=&reason={reason}".encode()
        answer = await api.ask("global_admin", "POST", "/admin/silence", data=body, headers=form)
        assert answer.status_code == 400
        page = await answer.get_data(as_text=True)
        assert f'id="wrong-reason" role="alert">Reason: {wrong}' in page.replace("must be ", "")
        assert 'value="7200" checked' in page
        assert f'value="{reason}" aria-describedby="wrong-reason hint-reason"' in page
        assert 'id="wrong-until"' not in page
    found = await call(api, "GET", PATH, who="global_admin")
    assert found == {"configured": False, "global_silence": {"enabled": False}}


async def test_an_invalid_end_is_refused_without_a_change(api: Api) -> None:
    set_ = await put(api, enabled=True, until=UNTIL)
    for until, wrong in (
        ("soon", "must be an RFC 3339 instant"),
        (to_text(FROZEN_NOW), "must lie ahead"),
        ("2099-01-01T00:00:00Z", "must be at most 366 days off"),
    ):
        refused = await put(api, 400, enabled=True, until=until)
        assert refused == {"error": f"global_silence.until: {wrong}"}
    assert await call(api, "GET", PATH, who="global_admin") == set_


async def test_start_and_end_of_a_silence_are_audited(api: Api) -> None:
    await put(api, enabled=True, until=UNTIL)
    await put(api, enabled=False)
    found = await api.rows("select action, target from audit_entries order by id desc limit 2")
    assert found == [
        ("settings.alerting", "settings:alerting silenced=False"),
        ("settings.alerting", f"settings:alerting silenced=True until={UNTIL}"),
    ]


async def test_every_page_of_a_project_shows_the_silence_until_it_ends(api: Api) -> None:
    page = f"/projects/{api.project}"
    assert "silenced" not in await text(api, "viewer", page)
    await put(api, enabled=True, until=UNTIL)
    shown = await text(api, "viewer", page)
    assert "All alerts are muted until 00:10:00 UTC" in shown
    assert "/admin/silence" not in shown, "a viewer cannot change it"
    assert 'href="/admin/silence">Change' in await text(api, "global_admin", page)
    await put(api, enabled=False)
    assert "silenced" not in await text(api, "viewer", page)


async def test_it_is_set_and_lifted_in_the_console(api: Api) -> None:
    path = "/admin/silence"

    async def post(body: str) -> Any:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return await api.ask("global_admin", "POST", path, data=body.encode(), headers=form)

    answer = await post("act=silence&for=time&reason=work&until=2026-01-05T00%3A10")
    assert answer.status_code == 303
    found = await call(api, "GET", PATH, who="global_admin")
    assert found["global_silence"]["until"] == UNTIL
    assert found["global_silence"]["reason"] == "work"
    shown = await text(api, "global_admin", path)
    assert "until 00:10:00 UTC" in shown
    assert 'value="2026-01-05T00:10"' in shown
    for typed, wrong in (("2025-01-05T00%3A10", "must lie ahead"), ("x", "a day and a time")):
        refused = await post(f"act=silence&for=time&reason=work&until={typed}")
        assert refused.status_code == 400
        page = await refused.get_data(as_text=True)
        assert wrong in page
        assert 'value="time" checked' in page
    assert await call(api, "GET", PATH, who="global_admin") == found
    assert (await post("act=lift&until=x")).status_code == 303
    found = await call(api, "GET", PATH, who="global_admin")
    assert found["global_silence"] == {"enabled": False}
    assert (await post("act=silence&for=unmuted&reason=work&until=")).status_code == 303
    shown = await text(api, "global_admin", path)
    assert "until unmuted" in shown


async def test_a_duration_ends_by_itself_and_the_screen_states_when(api: Api) -> None:
    path = "/admin/silence"
    shown = await text(api, "global_admin", path)
    assert re.search(
        r'value="1800" checked><span>30 minutes</span><small>until 00:30:00 UTC', shown
    )
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for seconds, end in (("1800", "00:30:00"), ("7200", "02:00:00"), ("28800", "08:00:00")):
        body = f"act=silence&for={seconds}&reason=work&until=".encode()
        answer = await api.ask("global_admin", "POST", path, data=body, headers=form)
        assert answer.status_code == 303
        found = await call(api, "GET", PATH, who="global_admin")
        assert found["global_silence"]["until"] == f"2026-01-05T{end}.000Z"
        shown = await text(api, "global_admin", f"{path}?saved=yes")
        assert f"Alerts are muted until {end} UTC, by" in shown
        assert f"The mute ends by itself at {end} UTC." in shown
    for wrong in ("", "60", "x", "-1800"):
        body = f"act=silence&for={wrong}".encode()
        answer = await api.ask("global_admin", "POST", path, data=body, headers=form)
        assert answer.status_code == 400
        assert "choose one of the durations" in await answer.get_data(as_text=True)
    assert await call(api, "GET", PATH, who="global_admin") == found
