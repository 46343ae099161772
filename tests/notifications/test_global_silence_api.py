"""The global silence in the API and the console: set, read, refused and shown."""

from typing import Any

from leadline.storage.core.instant import MINUTE, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import told

PATH = "/settings/alerting"
UNTIL = to_text(Instant(FROZEN_NOW + 10 * MINUTE))


async def put(api: Api, status: int = 200, **silence: Any) -> Any:
    body = {"global_silence": silence}
    return await told(api, "PUT", PATH, body, status, who="global_admin")


async def text(api: Api, who: str, path: str) -> str:
    shown: str = await (await api.ask(who, "GET", path)).get_data(as_text=True)
    return shown


async def test_a_silence_is_returned_and_can_be_written_back(api: Api) -> None:
    found = await told(api, "GET", PATH, who="global_admin")
    assert found == {"configured": False, "global_silence": {"enabled": False}}
    set_ = await put(api, enabled=True, until=UNTIL)
    assert set_ == {"configured": True, "global_silence": {"enabled": True, "until": UNTIL}}
    assert await told(api, "GET", PATH, who="global_admin") == set_
    assert await told(api, "PUT", PATH, set_, who="global_admin") == set_
    assert await put(api, enabled=True) == {
        "configured": True,
        "global_silence": {"enabled": True},
    }
    lifted = await told(api, "PUT", PATH, {}, who="global_admin")
    assert lifted == {"configured": True, "global_silence": {"enabled": False}}


async def test_an_expired_silence_is_disabled_and_can_be_written_back(api: Api) -> None:
    await put(api, enabled=True, until=UNTIL)
    async with api.pool.transaction("pass") as tx:
        await tx.execute(
            "update settings set value = jsonb_set(value, '{until}', to_jsonb(%(past)s::bigint))"
            " where name = 'alerting'",
            past=FROZEN_NOW - MINUTE,
        )
    over = await told(api, "GET", PATH, who="global_admin")
    past = to_text(Instant(FROZEN_NOW - MINUTE))
    assert over == {"configured": True, "global_silence": {"enabled": False, "until": past}}
    assert await told(api, "PUT", PATH, over, who="global_admin") == over


async def test_an_invalid_end_is_refused_without_a_change(api: Api) -> None:
    set_ = await put(api, enabled=True, until=UNTIL)
    for until, wrong in (
        ("soon", "must be an RFC 3339 instant"),
        (to_text(FROZEN_NOW), "must lie ahead"),
        ("2099-01-01T00:00:00Z", "must be at most 366 days off"),
    ):
        refused = await put(api, 400, enabled=True, until=until)
        assert refused == {"error": f"global_silence.until: {wrong}"}
    assert await told(api, "GET", PATH, who="global_admin") == set_


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

    answer = await post("act=silence&until=2026-01-05T00%3A10")
    assert answer.status_code == 303
    found = await told(api, "GET", PATH, who="global_admin")
    assert found["global_silence"] == {"enabled": True, "until": UNTIL}
    shown = await text(api, "global_admin", path)
    assert "until 00:10:00 UTC" in shown
    assert 'value="2026-01-05T00:10"' in shown
    for typed, wrong in (("2025-01-05T00%3A10", "must lie ahead"), ("x", "a day and a time")):
        refused = await post(f"act=silence&until={typed}")
        assert refused.status_code == 400
        assert wrong in await refused.get_data(as_text=True)
    assert await told(api, "GET", PATH, who="global_admin") == found
    assert (await post("act=lift&until=x")).status_code == 303
    found = await told(api, "GET", PATH, who="global_admin")
    assert found["global_silence"] == {"enabled": False}
    assert (await post("act=silence&until=")).status_code == 303
    shown = await text(api, "global_admin", path)
    assert "until unmuted" in shown
