"""Push keys: URLs that name a push monitor by its slug, as clients of Healthchecks send them."""

from typing import Any

import pytest

from leadline.http.monitors.routes import push as push_route
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_push_key import create_pushed_monitor
from tests.support.app.cast import Api

RUN = "5c8e6b2a-1c6f-4f0e-9a55-0f6a0d4f7a11"


async def key_of(api: Api, *, creates: bool) -> dict[str, Any]:
    path = f"/api/v1/projects/{api.project}/push-key"
    answer = await api.ask("editor", "POST", path, {"creates_monitors": creates})
    assert answer.status_code == 201, await answer.get_data()
    made: dict[str, Any] = await answer.get_json()
    return made


async def monitor(api: Api, **given: Any) -> dict[str, Any]:
    body = {"name": "Job", "type": "push", **given}
    answer = await api.ask("editor", "POST", f"/api/v1/projects/{api.project}/monitors", body)
    assert answer.status_code == 201
    made: dict[str, Any] = await answer.get_json()
    return made


async def status_of(api: Api, path: str, method: str = "GET", data: bytes = b"") -> int:
    return int((await api.ask("nobody", method, path, data=data)).status_code)


@pytest.mark.parametrize("root", ["/ping/", "/api/v1/public/push/"])
async def test_a_slug_after_the_key_names_a_monitor(api: Api, root: str) -> None:
    made = await monitor(api, slug="nightly")
    key = (await key_of(api, creates=False))["push_key"]
    base = f"{root}{key}/nightly"
    for path in (f"/start?rid={RUN}", f"?rid={RUN}", "/3", "/log"):
        assert await status_of(api, base + path, "POST", b"out") == 200
    found = await api.rows("select up, code from heartbeats order by ts")
    assert found == [(True, None), (False, 3)]
    assert await api.rows("select outcome from push_runs") == [("succeeded",)]
    for path in ("", "/", "/unknown", "/nightly/sideways", "/Nightly/../x", "/nightly/0/1"):
        assert await status_of(api, f"{root}{key}{path}") == 404, path
    token = made["push_token"]
    assert await status_of(api, f"{root}{token}/nightly") == 404
    assert await status_of(api, f"{root}{token}/nightly/start") == 404
    assert await status_of(api, f"{root}{token}/0") == 200


async def test_the_ping_path_takes_a_push_token(api: Api) -> None:
    token = (await monitor(api))["push_token"]
    for path in (f"/start?rid={RUN}", f"/0?rid={RUN}", "/255", "", "/log"):
        assert await status_of(api, f"/ping/{token}{path}", "HEAD") == 200
    assert await api.rows("select up, code from heartbeats order by ts") == [
        (True, 0),
        (False, 255),
        (True, None),
    ]


async def test_the_first_push_creates_a_monitor_if_the_project_allows_it(api: Api) -> None:
    key = (await key_of(api, creates=False))["push_key"]
    assert await status_of(api, f"/ping/{key}/backup/start?create=1") == 404
    assert await api.rows("select count(*) from monitors") == [(0,)]
    path = f"/api/v1/projects/{api.project}/push-key"
    changed = await api.ask("editor", "PATCH", path, {"creates_monitors": True})
    assert (await changed.get_json())["push_key"] == key
    assert await status_of(api, f"/ping/{key}/backup?create=0") == 404
    assert await status_of(api, f"/ping/{key}/backup/start") == 200
    assert await status_of(api, f"/ping/{key}/backup/0") == 200
    found = await api.rows("select slug, name, type, interval_seconds from monitors")
    assert found == [("backup", "backup", "push", 86_400)]
    assert await api.rows("select outcome from push_runs") == [("succeeded",)]
    audit = await api.rows("select actor_label from audit_entries where action = 'monitor.create'")
    assert audit == [("push key",)]


async def test_a_push_does_not_create_a_second_monitor_of_another_type(api: Api) -> None:
    await monitor(api, slug="web", type="tcp", target="127.0.0.1:1")
    key = (await key_of(api, creates=True))["push_key"]
    assert await status_of(api, f"/ping/{key}/web") == 409
    assert await api.rows("select count(*) from monitors") == [(1,)]


async def test_a_new_key_ends_the_old_one_and_a_deletion_ends_it(api: Api) -> None:
    await monitor(api, slug="nightly")
    old = (await key_of(api, creates=False))["push_key"]
    assert await status_of(api, f"/ping/{old}/nightly") == 200
    new = (await key_of(api, creates=False))["push_key"]
    assert await status_of(api, f"/ping/{old}/nightly") == 404
    assert await status_of(api, f"/ping/{new}/nightly") == 200
    path = f"/api/v1/projects/{api.project}/push-key"
    assert (await api.ask("viewer", "GET", path)).status_code == 403
    assert (await api.ask("editor", "GET", path)).status_code == 200
    assert (await api.ask("editor", "DELETE", path)).status_code == 204
    assert (await api.ask("editor", "GET", path)).status_code == 404
    assert (await api.ask("editor", "PATCH", path, {"creates_monitors": True})).status_code == 404
    assert await status_of(api, f"/ping/{new}/nightly") == 404
    stored = await api.rows("select count(*) from push_keys")
    assert stored == [(0,)]


@pytest.mark.parametrize("word", ["start", "fail", "Fail", "log", "0", "1", "255"])
async def test_a_report_without_a_slug_is_not_the_report_of_a_monitor(api: Api, word: str) -> None:
    """The client forgot the slug after the push key."""
    key = (await key_of(api, creates=True))["push_key"]
    assert await status_of(api, f"/ping/{key}/{word}") == 404
    assert await api.rows("select count(*) from monitors") == [(0,)]
    if word.isalpha():
        assert await status_of(api, f"/ping/{key}/{word}/1") == 200
        assert await status_of(api, f"/ping/{key}/{word}") == 404
        assert await api.rows("select slug from monitors") == [(word.lower(),)]
        assert await api.rows("select up, code from heartbeats") == [(False, 1)]


async def test_a_monitor_has_one_entry_in_the_cache(api: Api) -> None:
    made = await monitor(api, slug="nightly")
    key = (await key_of(api, creates=False))["push_key"]
    for base in (f"/ping/{key}/nightly", f"/ping/{made['push_token']}"):
        assert [await status_of(api, f"{base}{path}") for path in ("", "/0", "/START")] == [200] * 3
        assert [await status_of(api, f"{base}/x{n}") for n in range(3)] == [404] * 3
    # A first start clears the cache.
    assert len(api.context.push_targets) <= 2
    assert await status_of(api, f"/ping/{key}/nightly") == 200
    assert await status_of(api, f"/ping/{made['push_token']}/7") == 200
    assert await status_of(api, f"/ping/{made['push_token']}/8") == 200
    assert len(api.context.push_targets) == 2


async def test_two_first_pushes_to_a_slug_are_both_recorded(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second push creates the monitor between the look-up and the creation of the first."""
    key = (await key_of(api, creates=True))["push_key"]
    create = create_pushed_monitor

    async def late(*given: Any) -> MonitorRow:
        monkeypatch.setattr(push_route, "create_pushed_monitor", create)
        assert await status_of(api, f"/ping/{key}/nightly") == 200
        return await create(*given)

    monkeypatch.setattr(push_route, "create_pushed_monitor", late)
    assert await status_of(api, f"/ping/{key}/nightly/3") == 200
    assert await api.rows("select slug from monitors") == [("nightly",)]
    found = await api.rows("select up, code from heartbeats order by up")
    assert found == [(False, 3), (True, None)]
