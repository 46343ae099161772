"""A copied service: its commands create the same service, and its bundle changes nothing."""

import html
import json
import re
from typing import Any

import pytest

from leadline.storage.bundles.rules.bundle_yaml import read_text
from tests.support.app.cast import Api
from tests.support.app.serving import call


async def page_of(api: Api, service: str, query: str = "", who: str = "editor") -> str:
    answer = await api.ask(who, "GET", f"/services/{service}/copy{query}")
    assert answer.status_code == 200
    return str(await answer.get_data(as_text=True))


def text_in(page: str) -> str:
    (found,) = re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)
    return html.unescape(found)


async def declared_service(api: Api) -> str:
    policy, upstream = await api.new_policy(), await api.new_service(name="Accounts")
    body = {
        "name": 'Front "door" it\'s',
        "slug": "front",
        "description": "What it's for",
        "escalation_policy_id": str(policy),
        "depends_on": [str(upstream)],
    }
    there = f"/projects/{api.project}/services"
    made = (await call(api, "POST", there, body, 201, who="editor"))["id"]
    monitors = [str((await api.new_monitor(name=f"till {n}")).uid) for n in range(3)]
    await api.new_monitor(name="elsewhere")
    declaration = {"expected_revision": 0, "monitors": monitors, "sli": monitors[:2]}
    await call(api, "PUT", f"{there}/{made}/declaration", declaration, who="editor")
    for window, objective in (("7d", 99.5), ("30d", 99.9)):
        target = {"window": window, "objective": objective}
        await call(api, "PUT", f"{there}/{made}/sla-target", target, who="editor")
    alerting = {"owns_paging": True, "page_on": ["down", "degraded"], "confirm_evaluations": 3}
    await call(api, "PATCH", f"{there}/{made}/alerting", alerting, who="editor")
    return str(made)


def commands(text: str) -> list[tuple[str, str, Any]]:
    """The method, path and body of each command."""
    found = re.findall(
        r"curl -fsS -X (\w+) \"\$PROJECT(/[^\"]+)\".*?-d '((?:[^']|'\"'\"')*)'", text, re.DOTALL
    )
    return [(how, path, json.loads(body.replace("'\"'\"'", "'"))) for how, path, body in found]


def settings(detail: Any) -> Any:
    service = {k: v for k, v in detail["service"].items() if not k.endswith("_at")}
    declaration = {k: detail["declaration"][k] for k in ("monitors", "sli", "policies")}
    targets = {one["window"]: one["objective"] for one in detail["sla_targets"]}
    needs = [one["id"] for one in detail["dependencies"]["depends_on"]]
    return {**service, "id": "", "slug": ""}, declaration, targets, needs, detail["alerting"]


async def test_the_commands_create_the_same_service(api: Api) -> None:
    service = await declared_service(api)
    text = text_in(await page_of(api, service))
    assert text.startswith(f"PROJECT=http://localhost/api/v1/projects/{api.project}\n")
    assert "Authorization: Bearer $LEADLINE_TOKEN" in text
    steps = commands(text)
    assert [(how, path.rpartition("/")[2]) for how, path, _ in steps] == [
        ("POST", "services"),
        ("PUT", "declaration"),
        ("PUT", "sla-target"),
        ("PUT", "sla-target"),
        ("PATCH", "alerting"),
    ]
    there, copy = f"/projects/{api.project}", ""
    for how, path, body in steps:
        target = there + path.replace("$SERVICE", copy)
        if how == "POST":
            body["slug"] = "copied"
            copy = (await call(api, how, target, body, 201, who="editor"))["id"]
        else:
            await call(api, how, target, body, who="editor")
    before = await call(api, "GET", f"{there}/services/{service}")
    after = await call(api, "GET", f"{there}/services/{copy}")
    assert settings(after) == settings(before)


async def test_the_bundle_has_the_service_with_its_members_and_changes_nothing(api: Api) -> None:
    service = await declared_service(api)
    page = await page_of(api, service, "?show=yaml")
    assert "1 service that it depends on" in page
    document: Any = read_text(text_in(page)).document
    assert list(document["services"]) == ["front"]
    assert sorted(document["monitors"]) == ["till-0", "till-1", "till-2"]
    path = f"/projects/{api.project}/bundle/plan"
    plan = await call(api, "POST", path, document, who="project_admin")
    assert {one["action"] for one in plan["changes"]} == {"unchanged"}


async def test_a_service_without_a_declaration_is_one_command(api: Api) -> None:
    service = str(await api.new_service(name="Bare"))
    methods = [how for how, _, _ in commands(text_in(await page_of(api, service)))]
    assert methods[0] == "POST"
    assert "PUT" not in methods
    assert "It contains the members of the service." in await page_of(api, service, "?show=yaml")


@pytest.mark.parametrize(("who", "status"), [("viewer", 403), ("neighbour", 404)])
async def test_only_editors_copy(api: Api, who: str, status: int) -> None:
    service = await api.new_service()
    assert (await api.ask(who, "GET", f"/services/{service}/copy")).status_code == status
    shown = await (await api.ask("viewer", "GET", f"/services/{service}")).get_data(as_text=True)
    assert "/copy" not in shown
    shown = await (await api.ask("editor", "GET", f"/services/{service}")).get_data(as_text=True)
    assert f'href="/services/{service}/copy?show=yaml"' in shown


async def test_a_service_of_a_file_provider_is_not_exported(api: Api) -> None:
    service = await api.new_service()
    async with api.pool.transaction("manage") as tx:
        await tx.execute("update services set managed_by = 'files', bundle_uid = 'x'")
    page = await page_of(api, str(service), "?show=yaml")
    assert "A file provider manages this service" in page


async def test_the_bundle_of_a_monitor_has_the_monitor_alone_and_changes_nothing(api: Api) -> None:
    """The objects of the project that need a newer format are no part of it."""
    await api.new_channel()
    monitor = await api.new_monitor(name="till")
    answer = await api.ask("editor", "GET", f"/monitors/{monitor.uid}/copy?show=yaml")
    document: Any = read_text(text_in(await answer.get_data(as_text=True))).document
    assert list(document) == ["format", "organization", "project", "monitors"]
    path = f"/projects/{api.project}/bundle/plan"
    plan = await call(api, "POST", path, document, who="project_admin")
    assert [one["action"] for one in plan["changes"]] == ["unchanged"]
