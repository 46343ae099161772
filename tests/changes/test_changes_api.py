"""Changes in the API: repeated records, pages, comparisons, and links to incidents."""

from typing import Any
from uuid import UUID

import pytest
import trio

from leadline.daemon.process.metrics import Metrics
from leadline.http.auth.passwords import Passwords
from leadline.http.wire.admission_control import AdmissionControl, RateLimits
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_text
from leadline.storage.engine.pools import Pool
from leadline.storage.services.rows import ServiceRow
from leadline.storage.services.tables.services import select_service
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.serving import (
    DOWN,
    NOWHERE,
    UNKNOWN,
    UP,
    call,
    declared,
    document,
    new,
    refused,
    sealed,
    uid_of,
)
from tests.support.worlds.change_records import decide

NOW = to_text(FROZEN_NOW)
RANGE = {"from": "2025-12-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}


def at(off_us: int) -> str:
    return to_text(Instant(FROZEN_NOW + off_us))


def body(phase: str = "started", external_id: str = "1", **given: Any) -> dict[str, Any]:
    values = {"kind": "deploy", "source": "ci", **given}
    return {"phase": phase, "external_id": external_id, **values}


async def say(
    api: Api, path: str, *args: str, status: int = 201, who: str = "editor", **given: Any
) -> Any:
    return await call(api, "POST", f"{path}/changes", body(*args, **given), status, who=who)


async def listed(api: Api, path: str, **query: Any) -> Any:
    return await call(api, "GET", f"{path}/changes", who="viewer", query={**RANGE, **query})


async def row_of(api: Api, path: str) -> ServiceRow:
    async with api.pool.transaction("look", read_only=True) as tx:
        row = await select_service(tx, UUID(uid_of(path)))
    assert row is not None
    return row


async def test_a_phase_is_recorded_and_a_repetition_returns_it(api: Api) -> None:
    path = await new(api, "shop")
    given: dict[str, Any] = {
        "ref": " v1 ",
        "url": "https://ci.example.com/1",
        "occurred_at": at(-SECOND),
    }
    made = await say(api, path, **given)
    row = made["change"]
    assert made == {
        "replayed": False,
        "change": {
            "id": row["id"],
            "service_id": uid_of(path),
            "source": "ci",
            "external_id": "1",
            "kind": "deploy",
            "phase": "started",
            "occurred_at": at(-SECOND),
            "ref": "v1",
            "url": "https://ci.example.com/1",
            "actor_label": row["actor_label"],
            "actor_user_id": str(api.users["editor"][1]),
            "via_token": False,
            "recorded_at": NOW,
        },
    }
    less: dict[str, Any] = {}
    for again in (less, given, {"ref": "v1", "occurred_at": row["occurred_at"]}):
        assert await say(api, path, status=200, **again) == {"replayed": True, "change": row}
    assert await say(api, path, status=200, who="token") == {"replayed": True, "change": row}


async def test_an_invalid_record_gets_its_code_its_field_and_the_rule(api: Api) -> None:
    path = f"{await new(api, 'shop')}/changes"
    source = "source_invalid: source: must match ^[a-z0-9][a-z0-9-]{0,63}$"
    bounds = "occurred_at: must be at most 31 days back and 5 minutes ahead"
    url = "url_invalid: url: must be an https URL with a host, without a user name or password"
    for given, said in (
        ({"kind": "rollout"}, "kind_invalid: kind: must be one of deploy, rollback, flag"),
        (
            {"phase": "done"},
            "phase_invalid: phase: must be one of started, succeeded, failed, cancelled",
        ),
        ({"source": "CI"}, source),
        ({"source": ""}, source),
        ({"external_id": " "}, "external_id_invalid: external_id: must be 1 to 128 characters"),
        ({"ref": "x" * 129}, "ref_invalid: ref: must be at most 128 characters"),
        ({"ref": "a\tb"}, "ref_invalid: ref: must not contain control characters"),
        ({"url": "http://ci.example.com"}, url),
        ({"url": "https://me:pw@ci.example.com"}, url),
        ({"occurred_at": "yesterday"}, "occurred_at: must be an RFC 3339 instant"),
        ({"occurred_at": at(6 * MINUTE)}, f"occurred_at_out_of_bounds: {bounds}"),
        ({"occurred_at": at(-32 * DAY)}, f"occurred_at_out_of_bounds: {bounds}"),
        ({"decision_id": "x"}, "decision_id: must be a UUID"),
        (
            {"decision_id": NOWHERE},
            "decision_unknown: decision_id: must be a decision about this service that is still "
            "kept",
        ),
        ({"ref": None}, "ref: expected str, got null"),
        ({"actor": "me"}, "invalid JSON body"),
    ):
        assert await refused(api, "POST", path, body(**given), 400) == said
    for field in ("kind", "phase", "source", "external_id"):
        less = body()
        del less[field]
        assert await refused(api, "POST", path, less, 400) == f"{field}: is required"
    assert await api.rows("select from changes") == []


async def test_a_contradicting_record_is_refused_with_a_code(api: Api) -> None:
    path = await new(api, "shop")
    await say(api, path, ref="v1", occurred_at=at(-MINUTE))
    post = f"{path}/changes"
    before = body("failed", occurred_at=at(-HOUR))
    said = "occurred_at_before_start: occurred_at: must not be before the change started"
    assert await refused(api, "POST", post, before, 400) == said
    for given, error in (
        ({"ref": "v2"}, "phase_exists: ref"),
        ({"url": "https://ci.example.com"}, "phase_exists: url"),
        ({"occurred_at": NOW}, "phase_exists: occurred_at"),
        ({"decision_id": NOWHERE}, "phase_exists: decision_id"),
        ({"kind": "flag"}, "kind_mismatch"),
    ):
        assert await refused(api, "POST", post, body(**given), 409) == error
    await say(api, path, "failed")
    assert await refused(api, "POST", post, body("succeeded"), 409) == "phase_order"
    await say(api, path, "cancelled", "2")
    assert await refused(api, "POST", post, body("started", "2"), 409) == "phase_order"


async def test_a_service_is_found_only_in_its_own_project(api: Api) -> None:
    path = await new(api, "shop")
    mill = f"/projects/{api.projects['acme/mill'][1]}/services/{uid_of(path)}"
    made = await say(api, path, "failed")
    incident = await api.new_incident()
    compare = {"source": "ci", "external_id": made["change"]["external_id"]}
    for place in (mill, f"{path.rpartition('/')[0]}/{NOWHERE}"):
        assert await refused(api, "POST", f"{place}/changes", body(), 404) == "not_found"
        for tail, query in (("", RANGE), ("/compare", compare)):
            await call(api, "GET", f"{place}/changes{tail}", status=404, query=query)
    for project, uid in (("acme/mill", str(incident)), ("acme/shop", NOWHERE)):
        gone = f"/projects/{api.projects[project][1]}/incidents/{uid}/changes"
        assert await call(api, "GET", gone, status=404) == {"error": "not_found"}


async def test_the_timeline_lists_groups_with_their_phases(api: Api) -> None:
    path = await new(api, "shop")
    first = await say(api, path, ref="v1", url="https://ci/1", occurred_at=at(-HOUR))
    second = await say(api, path, "succeeded", ref="v1.1", occurred_at=at(-MINUTE))
    third = await say(api, path, "failed", "2", kind="flag", occurred_at=at(-30 * MINUTE))
    phases = []
    for made in (first, second, third):
        row = dict(made["change"])
        for name in ("service_id", "source", "external_id", "kind"):
            del row[name]
        phases.append(row)
    assert await listed(api, path) == {
        "items": [
            {
                "source": "ci",
                "external_id": "1",
                "kind": "deploy",
                "ref": "v1.1",
                "url": "https://ci/1",
                "latest_occurred_at": at(-MINUTE),
                "phases": phases[:2],
                "incidents": [],
            },
            {
                "source": "ci",
                "external_id": "2",
                "kind": "flag",
                "ref": "",
                "url": "",
                "latest_occurred_at": at(-30 * MINUTE),
                "phases": phases[2:],
                "incidents": [],
            },
        ],
        "next_cursor": None,
    }


async def test_pages_go_on_and_a_cursor_is_of_its_list(api: Api) -> None:
    path, other = await new(api, "shop"), await new(api, "mill")
    for number in range(5):
        kind = ("deploy", "rollback")[number % 2]
        await say(api, path, "failed", str(number), kind=kind)
        await say(api, other, "failed", str(number), kind=kind)
    found, query = [], {"limit": "2", "kind": "deploy"}
    while True:
        page = await listed(api, path, **query)
        found += [item["external_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert found == ["4", "2", "0"]
    cursor = (await listed(api, path, limit="2"))["next_cursor"]
    later = {"from": "2025-12-02T00:00:00Z"}
    bad = [{"kind": "deploy"}, {"source": "ci"}, later, {"cursor": "x"}, {"cursor": cursor[:-2]}]
    for given in bad:
        answer = await call(
            api, "GET", f"{path}/changes", status=400, query={**RANGE, "cursor": cursor, **given}
        )
        assert answer == {"error": "cursor_invalid"}, given
    elsewhere = {**RANGE, "cursor": cursor}
    await call(api, "GET", f"{other}/changes", status=400, query=elsewhere)
    # Kinds are a set: they may be given in any order, and twice.
    asked = {**RANGE, "limit": "1", "kind": ["rollback", "deploy", "deploy"]}
    page = await call(api, "GET", f"{path}/changes", query=asked)
    again = {**asked, "kind": ["deploy", "rollback"], "cursor": page["next_cursor"]}
    page = await call(api, "GET", f"{path}/changes", query=again)
    assert [item["external_id"] for item in page["items"]] == ["3"]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ({"from": None}, "range_required"),
        ({"to": None}, "range_required"),
        ({"from": "yesterday"}, "range_invalid"),
        ({"from": ""}, "range_invalid"),
        ({"from": "2026-02-01T00:00:00Z"}, "range_invalid"),
        ({"from": "2025-10-31T23:59:59Z"}, "range_too_wide"),
        ({"limit": "0"}, "limit_invalid"),
        ({"limit": "201"}, "limit_invalid"),
        ({"limit": "many"}, "limit_invalid"),
        ({"cursor": ""}, "cursor_invalid"),
        ({"kind": "rollout"}, "kind_invalid: kind: must be one of deploy, rollback, flag"),
        ({"source": "C I"}, "source_invalid: source: must match ^[a-z0-9][a-z0-9-]{0,63}$"),
        ({"source": ["a", "b"]}, "source: is given more than once"),
    ],
)
async def test_a_list_that_cannot_be_is_refused(
    api: Api, query: dict[str, Any], error: str
) -> None:
    path = await new(api, "shop")
    asked = {name: value for name, value in {**RANGE, **query}.items() if value is not None}
    answer = await call(api, "GET", f"{path}/changes", status=400, query=asked)
    assert answer == {"error": error}


async def test_ninety_two_days_may_be_asked_for(api: Api) -> None:
    path = await new(api, "shop")
    await listed(api, path, **{"from": "2025-11-01T00:00:00Z"})


async def test_a_group_shows_the_decisions_of_the_gate_while_they_are_stored(api: Api) -> None:
    path = await new(api, "shop")
    row = await row_of(api, path)
    through = await decide(api.pool, row, FROZEN_NOW, "BLOCK", "ALLOW", "BLOCK")
    none = await decide(api.pool, row, FROZEN_NOW, "NOT_CONFIGURED", None, None)
    recorded = await say(api, path, "failed", "1", decision_id=str(through))
    assert recorded["change"]["decision_id"] == str(through)
    await say(api, path, "failed", "2", decision_id=str(none))
    links = [item["decision"] for item in (await listed(api, path))["items"]]
    assert links == [
        {"decision_id": str(none), "state": "NOT_CONFIGURED", "overridden": False},
        {
            "decision_id": str(through),
            "state": "BLOCK",
            "action": "ALLOW",
            "overridden": True,
        },
    ]
    async with api.pool.transaction("age") as tx:
        partitions = await tx.rows(
            "select inhrelid::regclass::text from pg_inherits "
            "where inhparent = 'gate_decisions'::regclass"
        )
        for (name,) in partitions:
            await tx.execute(f"drop table {name}")
    links = [item["decision"] for item in (await listed(api, path))["items"]]
    assert links == [
        {"decision_id": str(none), "aged_out": True},
        {"decision_id": str(through), "aged_out": True},
    ]


async def open_incident(api: Api, path: str, off_us: int) -> str:
    uid = await api.new_incident()
    async with api.pool.transaction("move") as tx:
        await tx.execute(
            "update incidents set service = (select id from services where uid = %(service)s), "
            "started_at = at(%(at)s) where uid = %(uid)s",
            service=UUID(uid_of(path)),
            at=Instant(FROZEN_NOW + off_us),
            uid=uid,
        )
    return str(uid)


async def test_an_incident_is_linked_to_the_changes_before_it(api: Api) -> None:
    base = await new(api, "base")
    shop = await new(api, "shop", depends_on=[uid_of(base)])
    below = await say(api, base, occurred_at=at(-2 * HOUR))
    own = await say(api, shop, occurred_at=at(-HOUR))
    ended = await say(api, shop, "succeeded")
    incident = await open_incident(api, shop, 90 * SECOND)
    place = f"/projects/{api.project}/incidents/{incident}/changes"
    first, second = (await call(api, "GET", place, who="viewer"))["items"]
    assert second == {
        "change": below["change"],
        "role": "upstream",
        "occurred_at": at(-2 * HOUR),
        "lag_seconds": 7_290,
        "computed_at": NOW,
        "phases": [{k: below["change"][k] for k in second["phases"][0]}],
    }
    assert (first["change"], first["role"]) == (own["change"], "own_service")
    assert [phase["id"] for phase in first["phases"]] == [
        own["change"]["id"],
        ended["change"]["id"],
    ]
    link = {
        "incident_id": incident,
        "opened_at": at(90 * SECOND),
        "role": "upstream",
        "lag_seconds": 7_290,
        "change_id": below["change"]["id"],
    }
    assert (await listed(api, base))["items"][0]["incidents"] == [link]
    [mine] = (await listed(api, shop))["items"][0]["incidents"]
    assert (mine["role"], mine["change_id"]) == ("own_service", own["change"]["id"])
    # A later edit does not change the dependencies of that time.
    graph = await call(api, "GET", f"{shop}/dependencies")
    less = {"depends_on": [], "graph_generation": graph["graph_generation"]}
    async with api.pool.transaction("later") as tx:
        await tx.execute(
            "update service_dependency_terms set from_at = from_at - interval '1 day', "
            "until_at = at(%(until)s)",
            until=Instant(FROZEN_NOW + DAY),
        )
    await call(api, "PUT", f"{shop}/dependencies", less)
    assert len((await call(api, "GET", place))["items"]) == 2
    other = f"/projects/{api.project}/incidents/{await api.new_incident()}/changes"
    assert await call(api, "GET", other) == {"items": []}


async def compared(api: Api, path: str, status: int = 200, **query: str) -> Any:
    asked = {"source": "ci", "external_id": "1", "horizon": "15m", **query}
    return await call(api, "GET", f"{path}/changes/compare", status=status, query=asked)


async def test_a_comparison_has_two_figures_and_their_difference(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (90, UP), (15, DOWN))
    made = await say(api, path, occurred_at=at(-20 * MINUTE), ref="v1")
    await say(api, path, "succeeded", occurred_at=at(-16 * MINUTE + SECOND))
    assert await compared(api, path) == {
        "source": "ci",
        "external_id": "1",
        "kind": "deploy",
        "ref": "v1",
        "change_id": made["change"]["id"],
        "terminal_phase": "succeeded",
        "t": at(-16 * MINUTE + SECOND),
        "horizon": "15m",
        "sealed_through": NOW,
        "as_of": NOW,
        "before": {
            "from": at(-35 * MINUTE),
            "to": at(-20 * MINUTE),
            "availability": 100.0,
            "good_seconds": 900.0,
            "bad_seconds": 0.0,
            "unknown_seconds": 0.0,
            "excluded_seconds": 0.0,
            "buckets": 15,
        },
        "after": {
            "from": at(-15 * MINUTE),
            "to": NOW,
            "availability": 0.0,
            "good_seconds": 0.0,
            "bad_seconds": 900.0,
            "unknown_seconds": 0.0,
            "excluded_seconds": 0.0,
            "buckets": 15,
        },
        "delta": -100.0,
    }


async def test_a_side_without_a_figure_has_a_reason(api: Api) -> None:
    path = await declared(api)
    await say(api, path, "failed", occurred_at=at(-10 * MINUTE))
    # No time is sealed yet, and the sealed time of the service has not begun.
    found = await compared(api, path)
    assert (found["sealed_through"], found["before"]["withheld"]) == (None, "no_facts")
    await sealed(api, path, (40, UNKNOWN), (10, UP))
    found = await compared(api, path)
    assert found["before"]["withheld"] == "undecidable"
    assert found["before"]["detail"] == "0 of 15 minutes could be decided"
    assert found["before"]["unknown_seconds"] == 900.0
    assert found["after"] == {
        "from": at(-10 * MINUTE),
        "to": at(5 * MINUTE),
        "pending": True,
        "sealed_through": NOW,
    }
    assert "delta" not in found
    found = await compared(api, path, horizon="24h")
    assert found["before"]["withheld"] == "undecidable"


async def test_a_definition_that_changed_is_not_compared(api: Api) -> None:
    path = await declared(api)
    await sealed(api, path, (60, UP))
    monitor = (await api.new_monitor()).uid
    await call(api, "PUT", f"{path}/declaration", document(monitor, revision=1))
    async with api.pool.transaction("age") as tx:
        for revision, off_us in ((1, -HOUR), (2, -16 * MINUTE)):
            await tx.execute(
                "update service_revisions set effective_at = at(%(at)s), governs_from = at(%(at)s) "
                "where revision = %(revision)s",
                at=Instant(FROZEN_NOW + off_us),
                revision=revision,
            )
    await say(api, path, occurred_at=at(-20 * MINUTE))
    await say(api, path, "succeeded", occurred_at=at(-16 * MINUTE))
    found = await compared(api, path)
    assert found["before"]["availability"] == 100
    assert found["after"] == {
        "from": at(-16 * MINUTE),
        "to": at(-MINUTE),
        "withheld": "definition_changed",
        "detail": f"revision 2 governs from {at(-16 * MINUTE)}",
    }


async def test_a_change_without_a_final_phase_cannot_be_compared(api: Api) -> None:
    path = await declared(api)
    await say(api, path)
    assert await compared(api, path, 404) == {"error": "no_terminal_phase"}
    assert await compared(api, path, 404, external_id="2") == {"error": "not_found"}
    for query, code in (
        ({"source": "C"}, "source_invalid"),
        ({"source": ""}, "source_invalid"),
        ({"external_id": ""}, "external_id_invalid"),
        ({"external_id": "a\x00"}, "external_id_invalid"),
        ({"horizon": "2h"}, "horizon_invalid"),
    ):
        found = await compared(api, path, 400, **query)
        assert found["error"].startswith(f"{code}: {code.removesuffix('_invalid')}: must ")
    missing = await call(api, "GET", f"{path}/changes/compare", status=400)
    assert missing["error"].startswith("source_invalid: ")
    # An identity is found however it is spelt.
    await say(api, path, "failed", "é")
    found = await compared(api, path, source=" ci", external_id="e\u0301 ")
    assert found["external_id"] == "é"


async def test_a_rate_limited_caller_gets_a_wait_time_and_does_not_count(
    pool: Pool, passwords: Passwords
) -> None:
    bounds = RateLimits(
        inflight_process=32, inflight_principal=8, principal_per_minute=2, process_per_minute=3
    )
    async with open_api(
        pool, FROZEN_NOW, passwords, change_records=AdmissionControl(bounds)
    ) as api:
        path = await new(api, "shop")

        async def post(who: str, **given: Any) -> tuple[int, Any, str | None]:
            answer = await api.ask(who, "POST", f"/api/v1{path}/changes", body(**given))
            found = await answer.get_json()
            return answer.status_code, found.get("error"), answer.headers.get("Retry-After")

        # An invalid record is refused before it counts.
        for _ in range(3):
            assert (await post("editor", kind="x"))[0] == 400
        assert [(await post("editor"))[0] for _ in range(2)] == [201, 200]
        assert await post("editor") == (429, "principal_rate", "30")
        assert (await post("token"))[0] == 200
        assert await post("token", external_id="2") == (429, "process_rate", "20")
        assert await api.rows("select external_id from changes") == [("1",)]
        assert dict(api.context.change_counts.recorded) == {"recorded": 1, "replayed": 2}
        assert dict(api.context.change_counts.rejected) == {
            "kind_invalid": 3,
            "principal_rate": 1,
            "process_rate": 1,
        }


async def test_reads_take_a_permit_and_no_token(pool: Pool, passwords: Passwords) -> None:
    reads = AdmissionControl(RateLimits(inflight_process=1))
    async with open_api(pool, FROZEN_NOW, passwords, change_reads=reads) as api:
        path = await new(api, "shop")
        await say(api, path, "failed")
        incident = await api.new_incident()
        asked: list[tuple[str, dict[str, str]]] = [
            (f"{path}/changes", RANGE),
            (f"{path}/changes/compare", {"source": "ci", "external_id": "1"}),
            (f"/projects/{api.project}/incidents/{incident}/changes", {}),
        ]
        with reads.permit("", FROZEN_NOW, takes_token=False):
            for place, query in asked:
                answer = await api.ask("viewer", "GET", f"/api/v1{place}", query=query)
                assert answer.status_code == 429
                assert await answer.get_json() == {"error": "process_inflight"}
                assert answer.headers["Retry-After"] == "1"
        for place, query in asked * 3:
            await call(api, "GET", place, query=query)
        assert dict(api.context.change_counts.compares) == {"withheld": 3}


async def test_concurrent_equal_records_are_one_change(api: Api) -> None:
    path = await new(api, "shop")
    statuses: list[int] = []

    async def post(who: str) -> None:
        answer = await api.ask(who, "POST", f"/api/v1{path}/changes", body(ref="v1"))
        statuses.append(answer.status_code)

    async with trio.open_nursery() as nursery:
        for who in ("editor", "project_admin", "org_admin", "token") * 4:
            nursery.start_soon(post, who)
    assert sorted(statuses) == [200] * 15 + [201]


async def test_a_change_token_records_and_reads_changes_only(api: Api) -> None:
    path = await new(api, "shop")
    made = await say(api, path, "failed", who="change_token")
    assert made["change"]["via_token"] is True
    await call(api, "GET", f"{path}/changes", who="change_token", query=RANGE)
    for who, status in (("gate_token", 403), ("viewer_token", 403), ("viewer", 403)):
        await say(api, path, "failed", "2", status=status, who=who)
    await call(api, "GET", path, status=403, who="change_token")


async def test_records_and_comparisons_are_counted(api: Api) -> None:
    metrics = Metrics()
    metrics.watch_asked(api.context)
    path = await declared(api)
    await say(api, path, "failed")
    await say(api, path, "failed", status=200)
    await say(api, path, status=409)
    await open_incident(api, path, SECOND)
    await listed(api, path)
    await compared(api, path)
    told_ = metrics.render().decode().splitlines()
    for line in (
        'leadline_changes_recorded_total{outcome="recorded"} 1.0',
        'leadline_changes_recorded_total{outcome="replayed"} 1.0',
        'leadline_change_record_rejected_total{reason="phase_order"} 1.0',
        'leadline_change_compares_total{outcome="withheld"} 1.0',
        "leadline_change_correlations_total 1.0",
    ):
        assert line in told_


async def test_a_decision_of_the_gate_is_named_by_its_id(api: Api) -> None:
    path, other = await new(api, "shop"), await new(api, "mill")
    decision = str(await api.new_decision(UUID(uid_of(path))))
    await say(api, path, "failed", decision_id=decision.upper())
    [item] = (await listed(api, path))["items"]
    link = {"decision_id": decision, "state": "NOT_CONFIGURED", "overridden": False}
    assert item["decision"] == link
    error = await refused(
        api, "POST", f"{other}/changes", body("failed", decision_id=decision), 400
    )
    assert error.startswith("decision_unknown: decision_id: ")


async def test_changes_go_with_their_service(api: Api) -> None:
    path = await new(api, "shop")
    await say(api, path, "failed")
    await call(api, "DELETE", path, status=204)
    assert await api.rows("select from changes") == []
    assert await api.rows("select from change_phases") == []
