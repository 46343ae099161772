"""The routes of agents: authentication, the jobs that are given out, and the results that are
accepted."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest
import trio

from leadline.http.auth.passwords import Passwords
from leadline.http.server.app import make_app
from leadline.http.server.route_table import ROUTES
from leadline.http.wire.options import HttpOptions
from leadline.probes.jobs.agent_protocol import (
    INSTANCE_HEADER,
    KINDS_HEADER,
    Generation,
    window_job_id,
)
from leadline.probes.jobs.envelope import open_envelope
from leadline.storage.agents.tables import agents
from leadline.storage.core.instant import SECOND, Instant
from tests.support.app.cast import Api
from tests.support.app.edge import (
    ANY_TOKEN,
    CORE_TOKEN,
    EU_TOKEN,
    Edge,
    instant_of,
    open_edge,
    other,
    result,
)

CALLS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "jobs?wait=0&region=", None),
    ("POST", "heartbeat?region=", {"workflow_kinds": [], "carrier": 4, "version": "1"}),
    ("POST", "results?region=", {"results": []}),
    ("POST", "backfill?region=", {"results": []}),
    ("POST", "certificates?region=", {"certificates": []}),
    (
        "POST",
        "tests?region=",
        {
            "test_id": "6f2b7a54-97c5-4d0e-8d8e-30f6f4b1c6a2",
            "ts": "2026-01-05T00:00:00Z",
            "outcome": "up",
            "latency_ms": 1,
            "msg": "",
        },
    ),
]
SHOP = {"auth_mode": "basic", "username": "shop", "password": "horse-battery"}

MILLISECONDS = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
async def edge(dsn: str, passwords: Passwords) -> AsyncIterator[Edge]:
    async with open_edge(dsn, passwords) as made:
        yield made


async def claims_wait(edge: Edge, count: int) -> None:
    """Waits until `count` claims wait for work."""
    with trio.fail_after(60):
        while edge.api.context.lookout.waiting < count:  # noqa: ASYNC110 - it sets no event
            await trio.sleep(0.01)


@pytest.mark.parametrize(("method", "path", "body"), CALLS, ids=[call[1] for call in CALLS])
async def test_a_token_opens_its_region_and_no_other(
    edge: Edge, method: str, path: str, body: dict[str, Any] | None
) -> None:
    for token in (None, "", "wrong", EU_TOKEN + "x", "leadline_agent_" + "a" * 43):
        refused = await edge.ask(method, path + "eu", body, token=token, status=401)
        assert refused == {"error": "unauthorized"}
    missing = path.partition("region=")[0].rstrip("?&")
    refused = await edge.ask(method, missing, body, status=400)
    assert refused == {"error": "region: is required"}
    refused = await edge.ask(method, path + "core", body, status=403)
    assert refused == {"error": "forbidden"}
    await edge.ask(method, path + "eu", body)
    await edge.ask(method, path + "core", body, token=CORE_TOKEN)
    await edge.ask(method, path + "us", body, token=ANY_TOKEN)
    refused = await edge.ask(method, path + "moon", body, token=ANY_TOKEN, status=400)
    assert refused == {"error": "region: is not known"}


async def test_a_token_of_a_user_and_a_token_of_an_agent_are_not_interchangeable(
    edge: Edge,
) -> None:
    for who in ("global_admin", "token"):
        answer = await edge.api.ask(who, "GET", "/api/v1/agent/jobs?region=eu&wait=0")
        assert answer.status_code == 401
    credential = {"Authorization": f"Bearer {ANY_TOKEN}"}
    answer = await edge.api.ask(credential, "GET", "/api/v1/organizations")
    assert answer.status_code == 401


async def test_the_agent_routes_need_agents_in_the_configuration(api: Api) -> None:
    context = replace(api.context, options=HttpOptions())
    client = make_app(context, ROUTES).test_client(use_cookies=False)
    found = await client.get("/api/v1/agent/jobs?region=eu")
    assert found.status_code == 404


async def test_a_head_request_claims_no_job(edge: Edge) -> None:
    answer = await edge.api.ask(
        {"Authorization": f"Bearer {EU_TOKEN}"}, "HEAD", "/api/v1/agent/jobs?region=eu"
    )
    assert answer.status_code == 405


@pytest.mark.parametrize("query", ["&max=0", "&max=101", "&wait=31", "&wait=-1", "&max=x"])
async def test_bounds_of_a_claim_are_named(edge: Edge, query: str) -> None:
    field = query[1:].partition("=")[0]
    path = f"jobs?region=eu{query}" + ("" if field == "wait" else "&wait=0")
    refused = await edge.ask("GET", path, status=400)
    assert refused["error"].startswith(f"{field}: ")


async def test_a_window_is_claimed_run_and_accounted_for(edge: Edge) -> None:
    row = await edge.monitor(conditions=["[STATUS] == 200"], config={"follow_redirects": False})
    due = await edge.due(row)
    (job,) = await edge.claim()
    assert job["monitor_id"] == str(row.uid)
    assert UUID(job["job_id"]) == window_job_id(row.uid, due, row.revision)
    assert instant_of(job["due_at"]) == due
    assert (due - instant_of(job["anchor"])) % (60 * SECOND) == 0
    assert instant_of(job["lease_expires_at"]) == due + 20 * SECOND
    for name in ("due_at", "anchor", "lease_expires_at"):
        assert re.fullmatch(MILLISECONDS, job[name]), name
    assert (job["type"], job["conditions"], job["config"]) == (
        "http",
        ["[STATUS] == 200"],
        {"follow_redirects": "false"},
    )
    assert job["carrier"] == Generation.PLAIN
    assert "envelope" not in job
    assert await edge.claim() == []
    counts = await edge.bring(result(row, due, after=0.5))
    assert counts == {"accepted": 1, "duplicate": 0, "ignored": 0}
    assert await edge.ledger(row) == [(due, "covered")]
    assert await edge.beats(row) == [(due + SECOND // 2, True, None)]
    counts = await edge.bring(result(row, due, after=0.7, up=False, msg="timeout shop"))
    assert counts == {"accepted": 0, "duplicate": 1, "ignored": 0}
    assert await edge.beats(row) == [(due + SECOND // 2, True, None)]


async def test_a_failure_is_a_failure_of_the_target(edge: Edge) -> None:
    row = await edge.monitor()
    due = await edge.due(row)
    counts = await edge.bring(result(row, due, up=False, code=503, msg="http_status shop.example"))
    assert counts["accepted"] == 1
    ((_, up, msg),) = await edge.beats(row)
    assert (up, msg) == (False, "http_status shop.example")


async def test_a_run_without_a_window_is_answered_once(edge: Edge) -> None:
    row = await edge.api.new_monitor(region="eu")
    (job,) = await edge.claim()
    assert UUID(job["job_id"]) != window_job_id(row.uid, instant_of(job["due_at"]), row.revision)
    item = result(row, instant_of(job["due_at"]), after=0.2, job_id=job["job_id"])
    assert (await edge.bring(item))["accepted"] == 1
    assert (await edge.bring(item)) == {"accepted": 0, "duplicate": 0, "ignored": 1}
    assert len(await edge.beats(row)) == 1
    assert await edge.ledger(row) == []


async def test_secrets_are_only_in_the_envelope(edge: Edge) -> None:
    await edge.declare()
    name = await edge.api.new_secret("token-value-1", "edge-token")
    headers = {"X-Api-Key": "header-value-1", "X-Plain": "plain"}
    row = await edge.monitor(config={"auth_mode": "bearer", "token_ref": name})
    other_row = await edge.monitor(config={**SHOP, "headers": headers})
    jobs: dict[str, Any] = {}
    for monitor in (row, other_row):
        await edge.due(monitor)
        jobs |= {job["config"]["auth_mode"]: job for job in await edge.claim()}
    text = str([{**job, "envelope": None} for job in jobs.values()])
    for secret in ("horse-battery", "header-value-1", "token-value-1"):
        assert secret not in text
    contents = open_envelope(jobs["basic"], EU_TOKEN)
    assert contents.config["password"] == "horse-battery"
    assert "header-value-1" in contents.config["headers"]
    assert "plain" in contents.config["headers"]
    contents = open_envelope(jobs["bearer"], EU_TOKEN)
    assert contents.secrets == {"token": "token-value-1"}
    assert jobs["bearer"]["carrier"] == Generation.PASSWORDS
    rows = await edge.api.rows(
        "select s::text from run_batches s union all select a::text from agents a"
    )
    assert "token-value-1" not in str(rows)


async def test_an_agent_gets_jobs_that_its_last_heartbeat_can_open(edge: Edge) -> None:
    row = await edge.monitor(config=SHOP)
    plain = await edge.monitor()
    await edge.declare(carrier=1)
    await edge.due(row)
    assert str(row.uid) not in {job["monitor_id"] for job in await edge.claim()}
    await edge.declare(carrier=2)
    assert str(row.uid) in {job["monitor_id"] for job in await edge.claim()}
    assert plain.uid != row.uid


async def test_a_job_that_cannot_be_prepared_is_reported_at_the_monitor(edge: Edge) -> None:
    await edge.declare()
    name = await edge.api.new_secret("token-value-1", "edge-token")
    row = await edge.monitor(config={"auth_mode": "bearer", "token_ref": name})
    async with edge.api.pool.transaction("forget_secret") as tx:
        await tx.execute("delete from project_secrets")
    await edge.due(row)
    assert await edge.claim() == []
    assert await edge.api.rows("select reason from probe_errors") == [("missing_reference",)]


async def test_a_canary_that_cannot_be_prepared_occupies_no_slot(edge: Edge) -> None:
    await edge.declare()
    name = await edge.api.new_secret("token-value-1", "edge-token")
    row = await edge.monitor(config={"auth_mode": "bearer", "token_ref": name})
    async with edge.api.pool.transaction("break_canary") as tx:
        await tx.execute("delete from project_secrets")
        await tx.execute("update monitors set type = 'async_canary' where id = %(id)s", id=row.id)
    await edge.due(row)
    assert await edge.claim(headers={KINDS_HEADER: "async_transaction@1"}) == []
    assert await edge.api.rows("select reason from probe_errors") == [("missing_reference",)]
    assert await edge.api.rows("select slot from canary_runs") == []


async def test_a_heartbeat_is_answered_with_our_time_and_remembered(edge: Edge) -> None:
    found = await edge.declare()
    assert instant_of(found["now"]) == edge.clock.now
    assert re.fullmatch(MILLISECONDS, found["now"])
    edge.clock.forward(30)
    instance = {"X-Leadline-Agent": "00000000-0000-4000-8000-000000000001"}
    await edge.declare(headers=instance)
    rows = await edge.api.rows("select name, region, carrier, last_seen_at from agents order by 4")
    assert [row[:3] for row in rows] == [("frankfurt", "eu", 4)] * 2
    assert [row[3] for row in rows] == [edge.clock.now - 30 * SECOND, edge.clock.now]


async def test_the_number_of_instances_of_an_agent_is_limited(
    edge: Edge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agents, "INSTANCES_MOST", 3)
    for number in range(1, 8):
        name = {"X-Leadline-Agent": str(UUID(int=number))}
        await edge.declare(headers=name)
        await edge.declare(headers=name)
    instances = [row[0] for row in await edge.api.rows("select instance from agents order by 1")]
    assert [one.int for one in instances] == [0, 1, 2, 3]


async def test_a_claim_of_a_less_capable_agent_does_not_delay_others(edge: Edge) -> None:
    row = await edge.monitor(config=SHOP)
    able = {"X-Leadline-Agent": str(UUID(int=7))}
    await edge.declare(carrier=1)
    await edge.declare(headers=able)
    found: list[Any] = []

    async def wait(everybody: trio.CancelScope) -> None:
        found.extend((await edge.ask("GET", "jobs?region=eu&wait=12", headers=able))["jobs"])
        everybody.cancel()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(edge.ask, "GET", "jobs?region=eu&wait=30")
            await claims_wait(edge, 40)
            nursery.start_soon(wait, nursery.cancel_scope)
            await claims_wait(edge, 41)
            await edge.due(row)
    assert [job["monitor_id"] for job in found] == [str(row.uid)]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"after": -0.001}, "ts: is before due_at"),
        ({"up": True, "msg": "timeout shop"}, "msg: must be empty if the target is up"),
        ({"up": False, "msg": ""}, "msg: begins with no failure class"),
        ({"up": False, "msg": "probe_error shop"}, "msg: begins with no failure class"),
        ({"up": False, "msg": "push_missed"}, "msg: begins with no failure class"),
        ({"up": False, "msg": "timeout a\nb"}, "msg: must contain only a failure class and a host"),
        ({"latency_ms": -1}, "latency_ms: "),
        ({"ts": "2026-01-05T00:00:00"}, "ts: "),
        ({"more": 1}, "invalid JSON body"),
    ],
)
async def test_a_result_that_cannot_be_is_refused_by_its_field(
    edge: Edge, change: dict[str, Any], fault: str
) -> None:
    row = await edge.monitor()
    due = await edge.due(row)
    good, bad = result(row, due), result(row, due, **change)
    refused = (await edge.bring(good, bad, status=400))["error"]
    assert fault in refused
    assert refused.startswith("results[1]" if fault.partition(":")[0] in bad else fault)
    assert await edge.beats(row) == []


async def test_a_batch_with_an_item_of_another_region_is_refused_whole(edge: Edge) -> None:
    row = await edge.monitor()
    home = await edge.api.new_monitor(region="core")
    due = await edge.due(row)
    for route in ("results", "backfill"):
        items = [result(row, due), result(home, due)]
        refused = await edge.bring(*items, route=route, status=403)
        assert refused == {"error": "forbidden"}
    assert await edge.beats(row) == []


async def test_a_result_without_a_known_window_is_ignored(edge: Edge) -> None:
    row = await edge.monitor()
    push = await edge.monitor(type="push", target="")
    due = await edge.due(row)
    items = [
        result(row, Instant(due + 1_000)),
        result(row, due, job_id=other(row.uid)),
        result(row, due, job_id=str(window_job_id(row.uid, due, row.revision + 1))),
        result(row, due, monitor_id=other(row.uid)),
        result(push, (await edge.api.rows("select anchor from monitor_terms"))[0][0]),
        # Begun when the next one was due already.
        result(row, Instant(due - 120 * SECOND), after=60),
    ]
    assert await edge.bring(*items) == {"accepted": 0, "duplicate": 0, "ignored": len(items)}
    assert await edge.beats(row) == []


async def test_a_run_of_an_older_definition_does_not_count(edge: Edge) -> None:
    row = await edge.monitor()
    due = await edge.due(row)
    (job,) = await edge.claim()
    edge.clock.forward(1)
    path = f"/api/v1/monitors/{row.uid}"
    answer = await edge.api.ask("editor", "PATCH", path, {"target": "http://127.0.0.1/other"})
    assert answer.status_code == 200
    late = result(row, due, after=2, job_id=job["job_id"])
    edge.clock.forward(5)
    assert (await edge.bring(late)) == {"accepted": 0, "duplicate": 0, "ignored": 1}
    begun_before = result(row, due, after=0.5, job_id=job["job_id"])
    assert (await edge.bring(begun_before))["accepted"] == 1


async def test_backfill_is_late_and_restates_what_was_sealed(edge: Edge) -> None:
    row = await edge.monitor()
    due = await edge.due(row)
    edge.clock.forward(30)
    counts = await edge.bring(result(row, due), route="backfill")
    assert counts["accepted"] == 1
    assert await edge.ledger(row) == [(due, "covered_late")]
    async with edge.api.pool.transaction("seal") as tx:
        await tx.execute(
            "update shards set sealed_through = at(%(to)s)", to=Instant(due + 600 * SECOND)
        )
    edge.clock.forward(600)
    earlier = result(row, Instant(due + 60 * SECOND), up=False, msg="timeout shop")
    assert (await edge.bring(earlier, route="backfill"))["accepted"] == 1
    assert len(await edge.api.rows("select 1 from repairs")) == 1
    state = "select status from monitor_states where monitor = %(m)s"
    assert await edge.api.rows(state, m=row.id) == [("up",)]


async def test_a_revoked_token_is_refused_immediately(edge: Edge) -> None:
    made = await edge.api.ask(
        "global_admin", "POST", "/api/v1/agent-tokens", {"name": "attic", "region": "eu"}
    )
    assert made.status_code == 201
    issued = await made.get_json()
    await edge.claim(token=issued["token"])
    await edge.ask("GET", "jobs?region=core&wait=0", token=issued["token"], status=403)
    path = f"/api/v1/agent-tokens/{issued['id']}"
    assert (await edge.api.ask("global_admin", "DELETE", path)).status_code == 204
    await edge.claim(token=issued["token"], status=401)


async def test_a_claim_that_waits_ends_with_its_token(edge: Edge) -> None:
    made = await edge.api.ask(
        "global_admin", "POST", "/api/v1/agent-tokens", {"name": "attic", "region": "eu"}
    )
    issued = await made.get_json()
    row = await edge.monitor()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                partial(
                    edge.ask, "GET", "jobs?region=eu&wait=30", token=issued["token"], status=401
                )
            )
            await claims_wait(edge, 1)
            await edge.api.ask("global_admin", "DELETE", f"/api/v1/agent-tokens/{issued['id']}")
            await edge.due(row)
    assert len(await edge.claim()) == 1


async def test_a_claim_waits_for_work_and_gets_it(edge: Edge) -> None:
    row = await edge.monitor()
    found: list[Any] = []

    async def wait(number: int) -> None:
        found.append((number, await edge.ask("GET", "jobs?region=eu&wait=20&max=1")))

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, 1)
            await claims_wait(edge, 1)
            await edge.due(row)
    ((_, answer),) = found
    assert [job["monitor_id"] for job in answer["jobs"]] == [str(row.uid)]


async def test_an_agent_without_the_capability_does_not_block_a_job(edge: Edge) -> None:
    row = await edge.monitor(config=SHOP)
    old, able = ({INSTANCE_HEADER: str(UUID(int=n))} for n in (1, 2))
    await edge.declare(carrier=1, headers=old)
    await edge.declare(headers=able)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(edge.ask, "GET", "jobs?region=eu&wait=25", headers=old))
            await claims_wait(edge, 1)
            await edge.due(row)
            found = await edge.ask("GET", "jobs?region=eu&wait=5", headers=able)
            nursery.cancel_scope.cancel()
    assert [job["monitor_id"] for job in found["jobs"]] == [str(row.uid)]


async def test_claims_that_wait_are_answered_when_the_process_stops(edge: Edge) -> None:
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(edge.ask, "GET", "jobs?region=eu&wait=30")
            await claims_wait(edge, 3)
            edge.api.context.stopping.set()


async def test_batches_have_a_bound(edge: Edge) -> None:
    row = await edge.monitor()
    due = await edge.due(row)
    items = [result(row, due)] * 501
    assert (await edge.bring(*items, status=400))["error"].startswith("results: ")
    counts = await edge.bring(*items[:500])
    assert counts == {"accepted": 1, "duplicate": 499, "ignored": 0}
