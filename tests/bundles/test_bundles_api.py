"""Bundles in the API: an application does exactly what its plan lists, completely or not at all."""

from typing import Any

import pytest

from tests.support.app.cast import Api
from tests.support.app.serving import told

WEB: dict[str, Any] = {"name": "Web", "type": "http", "target": "https://shop.example.org/"}
PUSH: dict[str, Any] = {"name": "Nightly", "type": "push", "interval_seconds": "1h"}


def bundle(monitors: dict[str, Any], services: dict[str, Any] | None = None) -> dict[str, Any]:
    head = {"format": 1, "organization": "acme", "project": "shop", "monitors": monitors}
    return head if services is None else {**head, "format": 2, "services": services}


async def ask(api: Api, verb: str, document: dict[str, Any], status: int = 200) -> Any:
    path = f"/projects/{api.project}/bundle/{verb}"
    return await told(api, "POST", path, document, status, who="project_admin")


async def applied(api: Api, document: dict[str, Any]) -> dict[str, str]:
    """Applies a document and returns the action of each entry. The plan lists the same actions
    before and no action afterwards."""
    plan = await ask(api, "plan", document)
    found = await ask(api, "apply", document)
    assert plan["applied"] is False
    assert found["applied"] is True
    assert plan["changes"] == found["changes"]
    again = await ask(api, "plan", document)
    assert {one["action"] for one in again["changes"]} <= {"unchanged"}
    assert not any("fields" in one for one in again["changes"])
    return {one["uid"]: one["action"] for one in found["changes"]}


async def monitors(api: Api) -> dict[str, Any]:
    listed = await told(api, "GET", f"/projects/{api.project}/monitors", who="editor")
    return {one["slug"]: one for one in listed}


async def export(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = await told(api, "GET", f"/projects/{api.project}/bundle", who="editor")
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
        answer = await told(api, method, path, body, 409, who="project_admin")
        assert answer == {"error": "managed_by_file"}
    # An object that the bundle no longer names can be edited.
    await applied(api, bundle({"nightly": PUSH}))
    await told(api, "PATCH", path, {"name": "X"}, who="editor")
    await told(api, "DELETE", path, None, 204, who="editor")


async def test_an_existing_object_is_adopted_and_the_plan_lists_it(api: Api) -> None:
    made = await api.new_monitor(slug="web", name="Old", type="http", target=WEB["target"])
    plan = await ask(api, "plan", bundle({"web": WEB}))
    assert plan["changes"][0]["fields"] == [
        {"name": "managed_by", "from": "", "to": "api"},
        {"name": "name", "from": "Old", "to": "Web"},
    ]
    await applied(api, bundle({"web": WEB}))
    assert (await monitors(api))["web"]["id"] == str(made.uid)


async def test_a_retired_monitor_is_not_adopted_and_started(api: Api) -> None:
    made = await api.new_monitor(slug="web", type="http", target=WEB["target"])
    successor = {"service_id": str(await api.new_service())}
    await told(api, "PUT", f"/monitors/{made.uid}/successor", successor)
    await told(api, "POST", f"/monitors/{made.uid}/retire")
    refused = await ask(api, "apply", bundle({"web": WEB}), 409)
    assert refused == {"error": "monitors.web: retired"}
    paused = bundle({"web": {**WEB, "enabled": False}})
    assert await applied(api, paused) == {"web": "update"}
    assert "retired_at" in (await monitors(api))["web"]
    assert await applied(api, bundle({})) == {"web": "orphan"}
    assert "retired_at" in (await monitors(api))["web"]


async def test_the_export_of_a_project_applies_without_changes(api: Api) -> None:
    await told(
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
            }
        ),
    )
    document = await export(api)
    assert set(document["monitors"]) == {"api", "web", "db", "all"}
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
        one["service"]["slug"]: one["service"] for one in await told(api, "GET", base, who="viewer")
    }
    assert listed["shop"]["managed_by"] == "api"
    shop = f"{base}/{listed['shop']['id']}"
    told_of = await told(api, "GET", shop, who="viewer")
    assert told_of["declaration"]["revision"] == 1
    assert [one["slug"] for one in told_of["dependencies"]["depends_on"]] == ["net"]
    answer = await told(api, "PATCH", f"{shop}/alerting", {"owns_paging": False}, 409, who="editor")
    assert answer == {"error": "managed_by_file"}
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
    told_of = await told(api, "GET", shop, who="viewer")
    assert told_of["declaration"]["revision"] == 2
    assert [one["window"] for one in told_of["sla_targets"]] == ["30d"]
    # The orphaned service owns no paging and can be edited.
    assert await applied(api, bundle(entries)) == {
        "web": "unchanged",
        "nightly": "unchanged",
        "shop": "orphan",
        "net": "orphan",
    }
    alerting = await told(api, "GET", f"{shop}/alerting", who="viewer")
    assert alerting["owns_paging"] is False
    await told(api, "PATCH", f"{shop}/alerting", {"owns_paging": True}, who="editor")


async def test_a_service_is_exported_and_taken_over(api: Api) -> None:
    made = await api.new_monitor(slug="web", name="Web")
    service = await api.new_service(slug="shop", name="Shop", aims=True)
    await told(
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
