"""Bundles in the API: an application does exactly what its plan lists, completely or not at all."""

from typing import Any

import pytest

from tests.support.app.cast import Api
from tests.support.app.serving import call

WEB: dict[str, Any] = {"name": "Web", "type": "http", "target": "https://shop.example.org/"}
PUSH: dict[str, Any] = {"name": "Nightly", "type": "push", "interval_seconds": "1h"}


def bundle(monitors: dict[str, Any], services: dict[str, Any] | None = None) -> dict[str, Any]:
    head = {"format": 1, "organization": "acme", "project": "shop", "monitors": monitors}
    return head if services is None else {**head, "format": 2, "services": services}


async def ask(
    api: Api, verb: str, document: dict[str, Any], status: int = 200, query: str = ""
) -> Any:
    path = f"/projects/{api.project}/bundle/{verb}{query}"
    return await call(api, "POST", path, document, status, who="project_admin")


async def applied(api: Api, document: dict[str, Any], query: str = "") -> dict[str, str]:
    """Applies a document and returns the action of each entry. The plan lists the same actions
    before and no action afterwards."""
    plan = await ask(api, "plan", document, query=query)
    found = await ask(api, "apply", document, query=query)
    assert plan["applied"] is False
    assert found["applied"] is True
    assert plan["changes"] == found["changes"]
    again = await ask(api, "plan", document, query=query)
    assert {one["action"] for one in again["changes"]} <= {"unchanged"}
    assert not any("fields" in one for one in again["changes"])
    return {one["uid"]: one["action"] for one in found["changes"]}


async def monitors(api: Api) -> dict[str, Any]:
    listed = await call(api, "GET", f"/projects/{api.project}/monitors", who="editor")
    return {one["slug"]: one for one in listed}


async def export(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = await call(api, "GET", f"/projects/{api.project}/bundle", who="editor")
    return found


async def test_a_bundle_comes_changes_and_goes(api: Api) -> None:
    first = bundle({"web": WEB, "nightly": PUSH})
    assert await applied(api, first) == {"web": "create", "nightly": "create"}
    made = await monitors(api)
    assert made["nightly"]["interval_seconds"] == 3_600
    assert made["web"]["management"] == {
        "source": "file",
        "provider": "api",
        "uid": "web",
        "read_only": True,
    }
    second = bundle({"web": {**WEB, "interval_seconds": 30, "tags": ["shop"]}, "nightly": PUSH})
    plan = await ask(api, "plan", second)
    assert plan["changes"][0] == {
        "kind": "monitor",
        "uid": "web",
        "action": "update",
        "fields": [
            {"name": "interval_seconds", "from": 60, "to": 30},
            {"name": "tags", "from": [], "to": ["shop"]},
        ],
    }
    assert await applied(api, second) == {"web": "update", "nightly": "unchanged"}
    assert await applied(api, bundle({"web": second["monitors"]["web"]})) == {
        "web": "unchanged",
        "nightly": "orphan",
    }
    now = await monitors(api)
    assert (now["nightly"]["enabled"], now["nightly"]["management"]["read_only"]) == (False, False)
    assert now["web"]["id"] == made["web"]["id"]
    # An orphan that the bundle names again is the same monitor.
    assert await applied(api, second) == {"web": "unchanged", "nightly": "update"}
    now = await monitors(api)
    assert (now["nightly"]["id"], now["nightly"]["enabled"]) == (made["nightly"]["id"], True)


async def test_a_plan_writes_nothing(api: Api) -> None:
    await ask(api, "plan", bundle({"web": WEB}))
    assert await monitors(api) == {}
    assert await api.rows("select from audit_entries where action like 'monitor.%%'") == []


async def test_an_application_is_not_audited(api: Api) -> None:
    await applied(api, bundle({"web": WEB, "nightly": PUSH}))
    await applied(api, bundle({"web": {**WEB, "interval_seconds": 77}}))
    await applied(api, bundle({}))
    assert await api.rows("select action, target from audit_entries") == []


async def test_managed_objects_cannot_be_edited_by_hand(api: Api) -> None:
    await applied(api, bundle({"web": WEB, "nightly": PUSH}))
    path = f"/monitors/{(await monitors(api))['web']['id']}"
    for method, body in (("PATCH", {"name": "X"}), ("DELETE", None)):
        answer = await call(api, method, path, body, 409, who="project_admin")
        assert answer == {"error": "managed_by_file"}
    # An object that the bundle no longer names can be edited.
    await applied(api, bundle({"nightly": PUSH}))
    await call(api, "PATCH", path, {"name": "X"}, who="editor")
    await call(api, "DELETE", path, None, 204, who="editor")


TAKE = "?take_over=true"


async def test_an_object_of_people_is_taken_over_on_request_and_the_plan_lists_it(api: Api) -> None:
    made = await api.new_monitor(slug="web", name="Old", type="http", target=WEB["target"])
    refused = {
        "error": "monitors.web: people edit it, and name would change:"
        " take it over with take_over (--take-over)"
    }
    assert await ask(api, "plan", bundle({"web": WEB}), 409) == refused
    assert await ask(api, "apply", bundle({"web": WEB}), 409) == refused
    assert (await monitors(api))["web"]["management"]["source"] == "ui"
    plan = await ask(api, "plan", bundle({"web": WEB}), query=TAKE)
    assert plan["changes"][0]["fields"] == [
        {"name": "managed_by", "from": "", "to": "api"},
        {"name": "name", "from": "Old", "to": "Web"},
    ]
    await applied(api, bundle({"web": WEB}), TAKE)
    now = (await monitors(api))["web"]
    assert (now["id"], now["management"]["provider"]) == (str(made.uid), "api")
    # Later applications need no request.
    assert await applied(api, bundle({"web": {**WEB, "name": "Web 2"}})) == {"web": "update"}


async def release(api: Api, body: Any = None, status: int = 200, query: str = "") -> Any:
    path = f"/projects/{api.project}/bundle/release{query}"
    return await call(api, "POST", path, {} if body is None else body, status, who="project_admin")


def counted(released: dict[str, int]) -> dict[str, int]:
    return {section: number for section, number in released.items() if number}


async def test_a_call_reverses_a_takeover(api: Api) -> None:
    await api.new_monitor(slug="web", name="Web", type="http", target=WEB["target"])
    entries = {"web": WEB, "nightly": PUSH}
    first = bundle(entries, {"shop": {"monitors": ["web"], "sli": ["web"]}})
    await applied(api, first, TAKE)
    answer = await release(api, {"monitors": ["web", "moon"]}, 400)
    assert answer == {"error": "monitors: names 'moon', which the bundle default does not manage"}
    assert counted(await release(api, {"monitors": ["web"]})) == {"monitors": 1}
    now = await monitors(api)
    assert now["web"]["management"] == {"source": "ui", "read_only": False}
    assert now["nightly"]["management"]["read_only"] is True
    audited = await api.rows("select action, target from audit_entries order by id desc limit 1")
    assert audited == [
        ("bundle.release", f"project:{api.project} bundle=default monitors=1 services=0")
    ]
    # The bundle leaves the monitor to people, as long as it describes the monitor as it is.
    assert set((await applied(api, first)).values()) == {"unchanged"}
    path = f"/monitors/{now['web']['id']}"
    await call(api, "PATCH", path, {"name": "By hand"}, who="editor")
    assert "people edit it" in (await ask(api, "apply", first, 409))["error"]
    assert counted(await release(api)) == {"monitors": 1, "services": 1}
    assert counted(await release(api)) == {}
    await call(api, "DELETE", path, None, 409, who="editor")
    await call(api, "PATCH", f"/monitors/{now['nightly']['id']}", {"name": "X"}, who="editor")


async def test_two_bundles_of_a_project_do_not_touch_each_other(api: Api) -> None:
    one, other = bundle({"web": WEB}), bundle({"nightly": PUSH})
    assert await applied(api, one, "?name=shop") == {"web": "create"}
    assert await applied(api, other, "?name=jobs.v2") == {"nightly": "create"}
    assert await applied(api, bundle({}), "?name=shop") == {"web": "orphan"}
    now = await monitors(api)
    assert (now["web"]["enabled"], now["nightly"]["enabled"]) == (False, True)
    assert now["nightly"]["management"]["path"] == "jobs.v2"
    # An orphan that another bundle names belongs to that one.
    assert await applied(api, bundle({"nightly": PUSH, "web": WEB}), "?name=jobs.v2") == {
        "nightly": "unchanged",
        "web": "update",
    }
    changed = bundle({"web": {**WEB, "name": "W"}})
    assert await ask(api, "apply", changed, 409, "?name=shop") == {
        "error": "monitors.web: the bundle jobs.v2 manages it, and name would change:"
        " take it over with take_over (--take-over)"
    }
    plan = await ask(api, "plan", changed, query=f"{TAKE}&name=shop")
    assert plan["changes"][0]["fields"][0] == {
        "name": "managed_by",
        "from": "api/jobs.v2",
        "to": "api/shop",
    }
    await applied(api, changed, f"{TAKE}&name=shop")
    assert await applied(api, other, "?name=jobs.v2") == {"nightly": "unchanged"}
    answer = await ask(api, "plan", one, 400, "?name=a/b")
    assert answer["error"].startswith("name: must have 1 to 63 letters")


async def test_the_export_changes_no_owner_under_any_name(api: Api) -> None:
    """People, two bundles and an orphan, whose uid is the slug of a monitor of people."""
    await api.new_monitor(slug="hand", name="Hand", type="http", target=WEB["target"])
    await applied(api, bundle({"web": WEB}), "?name=shop")
    await applied(api, bundle({"nightly": PUSH, "till": {**WEB, "slug": "old"}}))
    await applied(api, bundle({"nightly": PUSH}))
    await api.new_monitor(slug="till", name="Till", type="http", target=WEB["target"])
    await api.new_service()
    query = "select slug, managed_by, bundle_uid, bundle_path, orphaned_at, enabled from monitors"
    before = sorted(await api.rows(query), key=str)
    document = await export(api)
    assert set(document["monitors"]) == {"hand", "web", "nightly", "till-2"}
    for name in ("", "?name=shop", "?name=other"):
        plan = await ask(api, "plan", document, query=name)
        assert {one["action"] for one in plan["changes"]} == {"unchanged"}
        assert not any("fields" in one for one in plan["changes"])
        await ask(api, "apply", document, query=name)
        assert sorted(await api.rows(query), key=str) == before


async def test_a_retired_monitor_is_not_adopted_and_started(api: Api) -> None:
    made = await api.new_monitor(slug="web", type="http", target=WEB["target"])
    successor = {"service_id": str(await api.new_service())}
    await call(api, "PUT", f"/monitors/{made.uid}/successor", successor)
    await call(api, "POST", f"/monitors/{made.uid}/retire")
    refused = await ask(api, "apply", bundle({"web": WEB}), 409, TAKE)
    assert refused == {"error": "monitors.web: retired"}
    paused = bundle({"web": {**WEB, "enabled": False}})
    assert await applied(api, paused, TAKE) == {"web": "update"}
    assert "retired_at" in (await monitors(api))["web"]
    assert await applied(api, bundle({})) == {"web": "orphan"}
    assert "retired_at" in (await monitors(api))["web"]


async def test_the_export_of_a_project_applies_without_changes(api: Api) -> None:
    await call(
        api,
        "POST",
        f"/projects/{api.project}/monitors",
        {
            "name": "Api",
            "type": "http",
            "target": "https://api.example.org/",
            "config": {"headers": {"Authorization": "Bearer hunter2", "Accept": "text/html"}},
            "conditions": ["[STATUS] == 200"],
        },
        201,
        who="editor",
    )
    await applied(
        api,
        bundle(
            {
                "web": WEB,
                "db": {**WEB, "slug": "database", "depends_on": ["web", "api"]},
                "all": {
                    "name": "All",
                    "type": "composite",
                    "config": {"children": ["web", "db", "api"], "mode": "any"},
                },
                "job": {
                    "name": "Job",
                    "type": "push",
                    "schedule": "30 2 1 * *",
                    "timezone": "Europe/Berlin",
                    "flap_threshold": 3,
                },
                "shop": {**WEB, "name": "Shop", "warn_certificate_days": 21},
            }
        ),
    )
    document = await export(api)
    assert document["monitors"]["shop"]["warn_certificate_days"] == 21
    assert set(document["monitors"]) == {"api", "web", "db", "all", "job", "shop"}
    assert "interval_seconds" not in document["monitors"]["job"]
    assert document["monitors"]["db"]["slug"] == "database"
    assert document["monitors"]["db"]["depends_on"] == ["web", "api"]
    assert document["monitors"]["all"]["config"]["children"] == ["web", "db", "api"]
    assert document["monitors"]["api"]["config"]["headers"]["Authorization"] == ""
    plan = await ask(api, "plan", document)
    assert {one["action"] for one in plan["changes"]} == {"unchanged"}
    await ask(api, "apply", document)
    # The stored credential is kept, although the export omits it.
    (kept,) = await api.rows(
        "select config_ciphertext is not null from monitors where slug = 'api'"
    )
    assert kept == (True,)
    assert await export(api) == document


async def test_an_invalid_entry_is_named_and_the_application_undone(api: Api) -> None:
    wrong = {**WEB, "target": "ftp://x"}
    answer = await ask(api, "apply", bundle({"web": WEB, "other": wrong}), 400)
    assert answer["error"].startswith("monitors.other.target: ")
    assert await monitors(api) == {}


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (
            {"web": {**WEB, "depends_on": ["till"]}},
            "monitors.web.depends_on: names 'till', which is neither in the bundle nor in the "
            "project",
        ),
        (
            {
                "web": {**WEB, "depends_on": ["till"]},
                "till": {**WEB, "depends_on": ["web"]},
            },
            "monitors.web: must not lead back to the monitor itself",
        ),
        (
            {"web": {**WEB, "escalation_policy": "nobody"}},
            "monitors.web.escalation_policy: is not a name in the project",
        ),
        (
            {"web": {**WEB, "region": "moon"}},
            "monitors.web.region: is not a region of this installation",
        ),
        (
            {"web": {**WEB, "config": {"password_ref": "db"}}},
            "monitors.web.config.password_ref: names no secret of this project",
        ),
        (
            {"all": {"name": "All", "type": "composite", "config": {"childern": ["web"]}}},
            "monitors.all.config.childern: is not a setting of composite",
        ),
    ],
)
async def test_a_reference_must_exist(api: Api, entries: dict[str, Any], said: str) -> None:
    assert await ask(api, "apply", bundle(entries), 400) == {"error": said}
    assert await ask(api, "plan", bundle(entries), 400) == {"error": said}


async def test_types_and_slugs_do_not_change(api: Api) -> None:
    await applied(api, bundle({"web": WEB}))
    answer = await ask(api, "apply", bundle({"web": {**PUSH}}), 400)
    assert answer["error"].startswith("monitors.web.type: is http")
    answer = await ask(api, "apply", bundle({"web": {**WEB, "slug": "www"}}), 400)
    assert answer["error"].startswith("monitors.web.slug: is web")


async def test_a_dependency_can_be_reversed(api: Api) -> None:
    one = bundle({"a": {**WEB, "depends_on": ["b"]}, "b": WEB})
    other = bundle({"a": WEB, "b": {**WEB, "depends_on": ["a"]}})
    await applied(api, one)
    assert await applied(api, other) == {"a": "update", "b": "update"}
    assert await applied(api, one) == {"a": "update", "b": "update"}


async def test_another_projects_bundle_is_refused(api: Api) -> None:
    document = {**bundle({"web": WEB}), "project": "mill"}
    answer = await ask(api, "apply", document, 400)
    assert answer == {"error": "project: is another than the one it is applied to"}
    document = {**bundle({"web": WEB}), "organization": "other"}
    answer = await ask(api, "apply", document, 400)
    assert answer == {"error": "organization: is not the organization of the project"}


async def test_a_name_that_is_given_twice_is_refused(api: Api) -> None:
    data = b'{"format":1,"organization":"acme","project":"shop","monitors":{"a":{},"a":{}}}'
    answer = await api.ask(
        "project_admin",
        "POST",
        f"/api/v1/projects/{api.project}/bundle/plan",
        data=data,
        headers={"Content-Type": "application/json"},
    )
    assert (answer.status_code, await answer.get_json()) == (400, {"error": "a: is given twice"})


SHOP: dict[str, Any] = {
    "name": "Shop",
    "monitors": ["web", "nightly"],
    "sli": ["web"],
    "policies": {"aggregation": {"mode": "any"}},
    "alerting": {"owns_paging": True, "renotify_seconds": "10m"},
    "sla_targets": {
        "30d": {
            "objective": 99.9,
            "burn_alert_enabled": True,
            "burn_rules": [
                {
                    "long_window_seconds": "1h",
                    "short_window_seconds": "5m",
                    "threshold": 14.4,
                    "severity": "page",
                }
            ],
        },
        "7d": {"objective": 99.5},
    },
}


async def test_services_come_change_and_fall_silent(api: Api) -> None:
    entries = {"web": WEB, "nightly": PUSH}
    services = {"shop": {**SHOP, "depends_on": ["net"]}, "net": {"name": "Net"}}
    first = bundle(entries, services)
    assert await applied(api, first) == {
        "web": "create",
        "nightly": "create",
        "shop": "create",
        "net": "create",
    }
    exported = (await export(api))["services"]["shop"]
    assert exported["monitors"] == ["web", "nightly"]
    assert exported["sla_targets"]["30d"]["burn_rules"] == [
        {
            "long_window_seconds": 3_600,
            "short_window_seconds": 300,
            "threshold": 14.4,
            "severity": "page",
        }
    ]
    assert set((await applied(api, first)).values()) == {"unchanged"}
    base = f"/projects/{api.project}/services"
    listed = {
        one["service"]["slug"]: one["service"] for one in await call(api, "GET", base, who="viewer")
    }
    assert listed["shop"]["managed_by"] == "api"
    shop = f"{base}/{listed['shop']['id']}"
    told_of = await call(api, "GET", shop, who="viewer")
    assert told_of["declaration"]["revision"] == 1
    assert [one["slug"] for one in told_of["dependencies"]["depends_on"]] == ["net"]
    answer = await call(api, "PATCH", f"{shop}/alerting", {"owns_paging": False}, 409, who="editor")
    assert answer == {"error": "managed_by_file"}
    hours = {"timezone": "", "windows": [{"weekdays": ["mon"], "from": "09:00", "to": "17:00"}]}
    # A bundle that states no support hours leaves them to people.
    await call(api, "PUT", f"{shop}/support-hours", hours, who="editor")
    # All settings of the service change in one application.
    changed = {
        **SHOP,
        "name": "The shop",
        "sli": ["web", "nightly"],
        "alerting": {"owns_paging": True, "page_on": ["degraded", "down"]},
        "sla_targets": {"30d": {"objective": 99.0}},
    }
    turned = bundle(entries, {"shop": changed, "net": {"name": "Net", "depends_on": ["shop"]}})
    plan = await ask(api, "plan", turned)
    names = {one["name"] for one in plan["changes"][2]["fields"]}
    assert names == {
        "name",
        "depends_on",
        "sli",
        "alerting.page_on",
        "alerting.renotify_seconds",
        "sla_targets.30d",
        "sla_targets.7d",
    }
    await applied(api, turned)
    told_of = await call(api, "GET", shop, who="viewer")
    assert told_of["declaration"]["revision"] == 2
    assert [one["window"] for one in told_of["sla_targets"]] == ["30d"]
    # The orphaned service owns no paging and can be edited.
    assert await applied(api, bundle(entries)) == {
        "web": "unchanged",
        "nightly": "unchanged",
        "shop": "orphan",
        "net": "orphan",
    }
    alerting = await call(api, "GET", f"{shop}/alerting", who="viewer")
    assert alerting["owns_paging"] is False
    await call(api, "PATCH", f"{shop}/alerting", {"owns_paging": True}, who="editor")


async def test_a_service_is_exported_and_taken_over(api: Api) -> None:
    made = await api.new_monitor(slug="web", name="Web")
    service = await api.new_service(slug="shop", name="Shop", aims=True)
    await call(
        api,
        "PUT",
        f"/projects/{api.project}/services/{service}/declaration",
        {"expected_revision": 0, "monitors": [str(made.uid)], "sli": [str(made.uid)]},
        who="editor",
    )
    document = await export(api)
    assert document["format"] == 2
    plan = await ask(api, "plan", document)
    assert {one["action"] for one in plan["changes"]} == {"unchanged"}
    await ask(api, "apply", document)
    assert await export(api) == document


@pytest.mark.parametrize(
    ("service", "said"),
    [
        ({"monitors": ["x"]}, "services.shop.monitors: names 'x', which is neither in the bundle"),
        ({"monitors": ["web"], "sli": ["nightly"]}, "services.shop: sli_not_in_monitors"),
        ({"depends_on": ["shop"]}, "services.shop.depends_on: must not lead back to itself"),
        ({"alerting": {"confirm_evaluations": 11}}, "services.shop.alerting.confirm_evaluations: "),
        ({"sla_targets": {"30d": {"objective": 100}}}, "services.shop.sla_targets.30d.objective: "),
        ({"name": " "}, "services.shop.name: must not be blank"),
    ],
)
async def test_an_error_of_a_service_is_named(api: Api, service: dict[str, Any], said: str) -> None:
    document = bundle({"web": WEB, "nightly": PUSH}, {"shop": service})
    answer = await ask(api, "apply", document, 400)
    assert answer["error"].startswith(said)
    assert await monitors(api) == {}


@pytest.mark.parametrize(
    "value", ["9" * 5_000, "1e999", "-0", '"\\ud83d"', "[" * 500 + "]" * 500, "1.5"]
)
async def test_any_value_gets_an_answer(api: Api, value: str) -> None:
    entry = f'{{"name":"Web","type":"http","target":"http://x/","config":{{"body":{value}}}}}'
    data = '{"format":1,"organization":"acme","project":"shop","monitors":{"web":' + entry + "}}"
    answer = await api.ask(
        "project_admin",
        "POST",
        f"/api/v1/projects/{api.project}/bundle/apply",
        data=data.encode(),
        headers={"Content-Type": "application/json"},
    )
    assert answer.status_code == 400
    assert list(await answer.get_json()) == ["error"]


async def test_a_plan_lists_all_settings_that_an_orphan_loses(api: Api) -> None:
    entries = {"web": WEB, "nightly": PUSH}
    await applied(api, bundle(entries, {"shop": SHOP}))
    gone = bundle({"nightly": PUSH})
    plan = await ask(api, "plan", gone)
    off = {"from": True, "to": False}
    assert [one for one in plan["changes"] if one["action"] == "orphan"] == [
        {
            "kind": "monitor",
            "uid": "web",
            "action": "orphan",
            "fields": [{"name": "enabled", **off}],
        },
        {
            "kind": "service",
            "uid": "shop",
            "action": "orphan",
            "fields": [
                {"name": "alerting.owns_paging", **off},
                {"name": "sla_targets.30d.burn_alert_enabled", **off},
            ],
        },
    ]
    await applied(api, gone)
    rows = await api.rows(
        "select a.owns_paging, t.burn_enabled from service_alerting a "
        "join service_targets t on t.org = a.org and t.service = a.service "
        'where t."window" = %(window)s',
        window="30d",
    )
    assert rows == [(False, False)]


async def test_a_new_entry_is_listed_with_its_given_settings(api: Api) -> None:
    """A plan of thousands of entries stays small enough for a client."""
    plan = await ask(api, "plan", bundle({"nightly": PUSH}))
    names = [one["name"] for one in plan["changes"][0]["fields"]]
    assert "description" not in names
    assert {"name", "interval_seconds", "retries"} <= set(names)
