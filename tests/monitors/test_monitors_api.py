"""Monitors in the API: stored fields, hidden fields, refusals that name the field, and audit
entries."""

import base64
from typing import Any

import pytest

from leadline.http.wire.cursor import write_cursor
from leadline.storage.core.instant import LATEST, MINUTE, Instant, to_text
from leadline.storage.results.rules.incoming_result import IncomingResult
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

GOOD = {"name": "Shop", "type": "http", "target": "https://shop.example/health"}


async def create(api: Api, who: str = "editor", **given: Any) -> dict[str, Any]:
    path = f"/api/v1/projects/{api.project}/monitors"
    answer = await api.ask(who, "POST", path, {**GOOD, **given})
    assert answer.status_code == 201, await answer.get_data()
    made: dict[str, Any] = await answer.get_json()
    return made


async def refused(api: Api, **given: Any) -> tuple[int, str]:
    path = f"/api/v1/projects/{api.project}/monitors"
    answer = await api.ask("editor", "POST", path, {**GOOD, **given})
    body = await answer.get_json()
    assert list(body) == ["error"]
    assert await api.rows("select id from monitors") == []
    return answer.status_code, body["error"]


async def test_omitted_fields_have_the_defaults_of_the_contract(api: Api) -> None:
    made = await create(api)
    expected = {
        "slug": "shop",
        "interval_seconds": 60,
        "timeout_seconds": 10,
        "retries": 0,
        "failure_threshold": 1,
        "confirm_interval_seconds": 10,
        "renotify_seconds": 0,
        "grace_seconds": 60,
        "region": "core",
        "enabled": True,
        "auto_incident": True,
        "status": "pending",
        "description": "",
        "depends_on": [],
    }
    assert {name: made[name] for name in expected} == expected
    assert "push_token" not in made


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"interval_seconds": 4}, "interval_seconds"),
        ({"interval_seconds": 86_401}, "interval_seconds"),
        ({"interval_seconds": 30, "timeout_seconds": 31}, "timeout_seconds"),
        ({"description": "x" * 201}, "description"),
        ({"target": "https://user:hunter2@shop.example/"}, "target"),
        ({"target": "gopher://shop.example/"}, "target"),
        ({"type": "async_canary", "target": ""}, "config.workflow"),
        ({"type": "nonsense"}, "type"),
        ({"region": "moon"}, "region"),
        ({"slug": "Not A Slug"}, "slug"),
        ({"conditions": ["[STATUS] === 200"]}, "conditions"),
        ({"config": {"nope": 1}}, "config.nope"),
        ({"config": {"headers": {"Host\n": "x"}}}, "config.headers"),
        ({"name": "two\nlines"}, "name"),
        ({"name": ""}, "name"),
        ({"retries": "three"}, "retries"),
        ({"depends_on": ["01a2000c-bd9e-7434-a37d-ed5e6a7d2c6d"]}, "depends_on"),
        ({"escalation_policy_id": "01a2000c-bd9e-7434-a37d-ed5e6a7d2c6d"}, "escalation_policy_id"),
    ],
)
async def test_a_refusal_names_the_field_and_repeats_no_value(
    api: Api, given: dict[str, Any], named: str
) -> None:
    status, error = await refused(api, **given)
    assert status == 400
    assert error.startswith(named), error
    assert "hunter2" not in error


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schedule": "0 25 * * *"}, "schedule: has a field hour"),
        ({"schedule": "0 0 1 * *"}, "schedule: must be due at least every 7 days"),
        (
            {"schedule": "0 0 29 2 *", "type": "push", "target": ""},
            "schedule: must be due at least every 35 days",
        ),
        ({"schedule": "0 3 * * *", "timezone": "Mars/Olympus"}, "timezone: must be an IANA"),
        ({"timezone": "Europe/Berlin"}, "timezone: must be empty without a schedule"),
        ({"schedule": "0 3 * * *", "type": "push", "target": "", "grace_seconds": 0}, "grace"),
        ({"schedule": "* * * * *", "timeout_seconds": 61}, "timeout_seconds: must not be above"),
        (
            {"schedule": "0 3 * * *", "type": "composite", "target": ""},
            "schedule: is not available",
        ),
    ],
)
async def test_a_bad_schedule_is_refused_by_field(
    api: Api, given: dict[str, Any], said: str
) -> None:
    status, error = await refused(api, **given)
    assert status == 400
    assert error.startswith(said)


async def test_a_schedule_determines_the_interval_and_the_next_due_instant(api: Api) -> None:
    made = await create(api, schedule="30 2 * * 1-5", timezone="Europe/Berlin")
    assert (made["interval_seconds"], made["timezone"]) == (86_400, "Europe/Berlin")
    assert made["next_due_at"][10:] in ("T00:30:00.000Z", "T01:30:00.000Z")
    path = f"/api/v1/monitors/{made['id']}"
    paused = await (await api.ask("editor", "PATCH", path, {"enabled": False})).get_json()
    assert "next_due_at" not in paused
    body = {"schedule": "", "timezone": "", "interval_seconds": 60, "enabled": True}
    plain = await (await api.ask("editor", "PATCH", path, body)).get_json()
    assert (plain["schedule"], plain["interval_seconds"]) == ("", 60)


async def test_a_slug_is_taken_once_and_derived_around(api: Api) -> None:
    await create(api)
    again = await create(api)
    assert again["slug"] == "shop-2"
    path = f"/api/v1/projects/{api.project}/monitors"
    answer = await api.ask("editor", "POST", path, {**GOOD, "slug": "shop"})
    assert (answer.status_code, await answer.get_json()) == (409, {"error": "slug_taken"})


async def test_an_edit_without_effect_writes_nothing(api: Api) -> None:
    config = {"auth_mode": "basic", "username": "mara", "password": "hunter2"}
    made = await create(api, config=config, tags=["a"])
    path = f"/api/v1/monitors/{made['id']}"

    async def written() -> list[Any]:
        return [
            await api.rows(f"select t::text from {table} t order by 1")
            for table in ("monitors", "monitor_states", "monitor_terms", "jobs", "audit_entries")
        ]

    before = await written()
    same = {name: made[name] for name in ("name", "target", "tags", "enabled", "region", "config")}
    for body in ({}, same, {"config": config}, {"depends_on": [], "escalation_policy_id": ""}):
        answer = await api.ask("editor", "PATCH", path, body)
        assert answer.status_code == 200, await answer.get_data()
        assert await written() == before, body
    answer = await api.ask("editor", "PATCH", path, {"config": {**config, "password": "other"}})
    assert answer.status_code == 200
    after = await written()
    assert after[0] != before[0]
    assert len(after[-1]) == len(before[-1]) + 1


async def test_a_secret_is_kept_sealed_never_returned_and_kept_by_a_blank(api: Api) -> None:
    secret = {"auth_mode": "basic", "username": "mara", "password": "hunter2"}
    secret["headers"] = {"X-Api-Key": "swordfish", "Accept": "text/plain"}  # type: ignore[assignment]
    made = await create(api, config=secret)
    assert "hunter2" not in str(made)
    assert "swordfish" not in str(made)
    assert made["config"]["headers"] == {"X-Api-Key": "", "Accept": "text/plain"}
    ((plain, sealed),) = await api.rows("select config::text, config_ciphertext from monitors")
    assert "hunter2" not in plain
    assert b"hunter2" not in sealed
    path = f"/api/v1/monitors/{made['id']}"
    answer = await api.ask("editor", "PATCH", path, {"config": made["config"], "name": "Shop 2"})
    assert answer.status_code == 200
    moved = {"target": "https://elsewhere.example/", "config": made["config"]}
    answer = await api.ask("editor", "PATCH", path, moved)
    assert answer.status_code == 400
    assert "config." in (await answer.get_json())["error"]
    moved["config"] = {**secret, "password": "new-one"}
    assert (await api.ask("editor", "PATCH", path, moved)).status_code == 200


async def test_a_viewer_is_shown_neither_secrets_nor_that_there_are_some(api: Api) -> None:
    config = {"auth_mode": "basic", "username": "mara", "password": "hunter2"}
    made = await create(api, config=config)
    seen = await (await api.ask("viewer", "GET", f"/api/v1/monitors/{made['id']}")).get_json()
    assert seen["config"] == {"auth_mode": "basic", "username": "mara"}
    pushed = await create(api, name="Job", type="push", target="")
    seen = await (await api.ask("viewer", "GET", f"/api/v1/monitors/{pushed['id']}")).get_json()
    assert "push_token" not in seen
    assert "push_url" not in seen


async def test_writes_are_audited_by_identifiers_and_never_by_bodies(api: Api) -> None:
    made = await create(api, target="https://secret-name.example/")
    path = f"/api/v1/monitors/{made['id']}"
    await api.ask("editor", "PATCH", path, {"enabled": False})
    await api.ask("editor", "PATCH", path, {"enabled": True, "description": "hunter2"})
    await api.ask("editor", "DELETE", path)
    rows = await api.rows("select action, target, actor_label from audit_entries order by id")
    assert [action for action, _, _ in rows] == [
        "monitor.create",
        "monitor.update",
        "monitor.update",
        "monitor.delete",
    ]
    assert all(made["id"] in target and "slug=shop" in target for _, target, _ in rows)
    assert "enabled=true->false" in rows[1][1].lower()
    assert "secret-name" not in str(rows)
    assert "hunter2" not in str(rows)


async def test_a_dependency_cannot_depend_on_its_dependent(api: Api) -> None:
    one = await create(api, name="One")
    two = await create(api, name="Two", depends_on=[one["id"]])
    answer = await api.ask(
        "editor", "PATCH", f"/api/v1/monitors/{one['id']}", {"depends_on": [two["id"]]}
    )
    assert answer.status_code == 400
    assert (await answer.get_json())["error"].startswith("depends_on")
    answer = await api.ask("editor", "DELETE", f"/api/v1/monitors/{one['id']}")
    assert (answer.status_code, await answer.get_json()) == (409, {"error": "in_use"})


async def test_asking_for_a_run_twice_is_refused_while_one_waits(api: Api) -> None:
    made = await create(api)
    path = f"/api/v1/monitors/{made['id']}/check"
    assert (await api.ask("editor", "POST", path)).status_code == 202
    assert (await api.ask("editor", "POST", path)).status_code == 409


async def test_a_test_before_saving_stores_no_row_and_returns_the_result(api: Api) -> None:
    path = f"/api/v1/projects/{api.project}/monitors/test"
    body = {"name": "x", "type": "tcp", "target": "127.0.0.1:1", "timeout_seconds": 2}
    seen = await (await api.ask("editor", "POST", path, body)).get_json()
    assert (seen["up"], seen["msg"]) == (False, "connect_refused 127.0.0.1")
    assert await api.rows("select id from monitors") == []
    answer = await api.ask("editor", "POST", path, {"name": "x", "type": "push"})
    assert answer.status_code == 400


async def _record(api: Api, made: dict[str, Any], count: int) -> None:
    ((org, monitor, shard),) = await api.rows("select org, id, shard from monitors")
    for n in range(count):
        due = Instant(FROZEN_NOW - (n + 1) * MINUTE)
        await api.context.recorder.record(
            IncomingResult(
                org=org,
                monitor=monitor,
                shard=shard,
                ts=due,
                up=n % 2 == 0,
                latency_ms=n,
                msg="" if n % 2 == 0 else "timeout shop.example",
                dues=(due,),
                windowed=True,
                reach_us=1_000 * MINUTE,
            )
        )


async def test_results_come_newest_first_and_the_ledger_page_by_page(api: Api) -> None:
    made = await create(api)
    async with api.pool.transaction("older") as tx:
        await tx.execute("update monitors set created_at = created_at - interval '1 day'")
    await _record(api, made, 7)
    beats = await (
        await api.ask("viewer", "GET", f"/api/v1/monitors/{made['id']}/heartbeats?limit=3")
    ).get_json()
    assert [beat["latency_ms"] for beat in beats] == [0, 1, 2]
    assert beats[1]["msg"] == "timeout shop.example"
    path = f"/api/v1/projects/{api.project}/monitors/{made['id']}/expected-runs"
    seen: list[str] = []
    cursor = ""
    for _ in range(5):
        page = await (await api.ask("viewer", "GET", f"{path}?limit=3{cursor}")).get_json()
        seen += [run["due_at"] for run in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert len(seen) == len(set(seen)) == 7
    assert seen == sorted(seen, reverse=True)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("limit=0", "limit_invalid"),
        ("limit=201", "limit_invalid"),
        ("limit=x", "limit_invalid"),
        ("limit=00019999", "limit_invalid"),
        ("cursor=nonsense", "cursor_invalid"),
        (f"cursor={base64.urlsafe_b64encode(bytes(17)).decode()}", "cursor_invalid"),
        ("from=yesterday", "from: must be an RFC 3339 instant"),
        ("from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "range_invalid"),
        ("limit=5&limit=6", "limit: is given more than once"),
    ],
)
async def test_a_bad_page_is_refused_in_the_words_of_the_interface(
    api: Api, query: str, error: str
) -> None:
    made = await create(api)
    path = f"/api/v1/projects/{api.project}/monitors/{made['id']}/expected-runs?{query}"
    answer = await api.ask("viewer", "GET", path)
    assert (answer.status_code, await answer.get_json()) == (400, {"error": error})


@pytest.mark.parametrize("instant", [-(2**63), 2**63 - 1])
async def test_a_forged_cursor_returns_no_rows(api: Api, instant: int) -> None:
    made = await create(api)
    forged = write_cursor([instant], ("expected-runs", made["id"], 0, LATEST))
    path = f"/api/v1/projects/{api.project}/monitors/{made['id']}/expected-runs?cursor={forged}"
    answer = await api.ask("viewer", "GET", path)
    assert answer.status_code == 200
    assert (await answer.get_json())["items"] == []


async def test_a_reserved_window_is_not_listed_before_it_is_due(api: Api) -> None:
    made = await create(api)
    async with api.pool.transaction("reserve") as tx:
        for seconds in (-1, 1):
            due = Instant(tx.now + seconds * 1_000_000)
            await tx.execute(
                "insert into run_batches (shard, kind, orgs, monitors, due_ats, seal_ats,"
                " claim_untils, published, first_due, claim_until, first_seal, last_seal)"
                " select shard, 'run', array[org], array[id], array[at(%(due)s)],"
                " array[at(%(due)s)], array[at(%(due)s)], true, at(%(due)s), at(%(due)s),"
                " at(%(due)s), at(%(due)s) from monitors",
                due=due,
            )
        await tx.execute("update monitors set created_at = created_at - interval '1 day'")
        due_text = to_text(Instant(tx.now - 1_000_000))
    path = f"/api/v1/projects/{api.project}/monitors/{made['id']}/expected-runs"
    page = await (await api.ask("viewer", "GET", path)).get_json()
    assert [(run["due_at"], run["verdict"]) for run in page["items"]] == [(due_text, "reserved")]


async def test_a_monitor_of_another_project_has_no_ledger_here(api: Api) -> None:
    made = await create(api)
    other = api.projects["acme/mill"][1]
    path = f"/api/v1/projects/{other}/monitors/{made['id']}/expected-runs"
    assert (await api.ask("org_admin", "GET", path)).status_code == 404


async def test_latency_has_no_point_for_a_time_without_a_successful_check(api: Api) -> None:
    made = await create(api)
    await _record(api, made, 6)
    path = f"/api/v1/monitors/{made['id']}/latency"
    query = "?from=2026-01-04T23:50:00Z&to=2026-01-05T00:00:00Z&step=minute"
    found = await (await api.ask("viewer", "GET", path + query)).get_json()
    assert found["step"] == "minute"
    assert [point["count"] for point in found["points"]] == [1, 1, 1]
    answer = await api.ask("viewer", "GET", path)
    assert await answer.get_json() == {"error": "range_required"}


async def test_a_push_of_an_unknown_token_and_one_that_is_renewed(api: Api) -> None:
    made = await create(api, name="Job", type="push", target="")
    path = f"/api/v1/public/push/{made['push_token']}"
    assert (await api.ask("nobody", "POST", path, data=b"\x00\xff")).status_code == 200
    assert (await api.ask("nobody", "GET", f"{path}/nonsense")).status_code == 404
    assert (await api.ask("nobody", "GET", f"{path}?status=sideways")).status_code == 400
    answer = await api.ask("editor", "POST", f"/api/v1/monitors/{made['id']}/push-token")
    assert answer.status_code == 201
    assert (await api.ask("nobody", "POST", path)).status_code == 404
    ((beats,),) = await api.rows("select count(*) from heartbeats")
    assert beats == 1


@pytest.mark.parametrize(
    ("query", "data", "stored", "warned"),
    [
        ("?status=UP", b"", (True, None, 0), []),
        ("?status=DOWN", b"", (False, None, 0), []),
        ("?ping=soon", b"", (True, None, 0), ["ping"]),
        (f"?msg={'a' * 250}&ping=9", b"", (True, "a" * 200, 9), ["msg"]),
        ("?msg=%FF%00%1b", b"", (True, "%FF", 0), ["msg"]),
        ("?msg=a&msg=b&ping=1&ping=2", b"", (True, "a", 1), ["msg", "ping"]),
        ("?status=up&status=UP&other=%FF", b"", (True, None, 0), []),
        ("/fail?status=sideways", b"", (False, None, 0), ["status"]),
        ("", b"x" * (64 * 1024), (True, None, 0), []),
        ("", b"x" * (64 * 1024 + 1), (True, None, 0), ["body"]),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
async def test_a_received_heartbeat_is_stored_with_any_invalid_parameters(
    api: Api, method: str, query: str, data: bytes, stored: tuple[Any, ...], warned: list[str]
) -> None:
    made = await create(api, name="Job", type="push", target="")
    path = f"/api/v1/public/push/{made['push_token']}{query}"
    answer = await api.ask("nobody", method, path, data=data)
    assert answer.status_code == 200
    assert await api.rows("select up, msg, latency_ms from heartbeats") == [stored]
    if method != "HEAD":
        body = await answer.get_json()
        assert [text.split(":")[0] for text in body.pop("warnings", [])] == warned
        assert body == {"ok": True, "monitor_id": made["id"], "up": stored[0]}


async def test_a_sender_cannot_pass_its_own_word_for_ours(api: Api) -> None:
    made = await create(api, name="Job", type="push", target="")
    await api.ask("nobody", "GET", f"/api/v1/public/push/{made['push_token']}?msg=push_missed")
    assert await api.rows("select msg from heartbeats") == [("push_missed (sent)",)]


async def test_a_push_to_a_paused_monitor_is_answered_and_not_stored(api: Api) -> None:
    made = await create(api, name="Job", type="push", target="", enabled=False)
    answer = await api.ask("nobody", "POST", f"/api/v1/public/push/{made['push_token']}")
    assert (answer.status_code, (await answer.get_json())["ok"]) == (200, True)
    assert await api.rows("select count(*) from heartbeats") == [(0,)]


async def test_push_marks_are_stored_and_cover_no_window(api: Api) -> None:
    made = await create(api, name="Job", type="push", target="")
    await api.ask("nobody", "GET", f"/api/v1/public/push/{made['push_token']}/start?msg=begun")
    assert await api.rows("select kind, msg from push_events") == [("start", "begun")]
    assert await api.rows("select count(*) from heartbeats") == [(0,)]
    seen = await (await api.ask("viewer", "GET", f"/api/v1/monitors/{made['id']}")).get_json()
    assert seen["status"] == "pending"
