"""The screen of the bundle of a project shows the plan of a text before its application."""

import re
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from leadline.http.bundles.console import bundle_screen as console
from leadline.http.bundles.console.plan_preview import shown_fields
from leadline.storage.bundles.rules.apply_log import extended
from leadline.storage.bundles.rules.bundle_diff import FieldChange
from leadline.storage.core.instant import SECOND, Instant
from tests.bundles.test_bundles_api import WEB, bundle
from tests.support.app.cast import Api
from tests.support.app.serving import call
from tests.support.worlds.background import operation_runner

HEAD = "format: 1\norganization: acme\nproject: shop\nmonitors:\n"
TYPED = HEAD + "  web: {name: Web, type: http, target: 'https://shop.example.org/', tags: [<b>]}\n"


async def send(api: Api, who: str = "project_admin", **form: str) -> tuple[int, str]:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    path = f"/projects/{api.project}/bundle"
    answer = await api.ask(who, "POST", path, data=urlencode(form).encode(), headers=headers)
    return answer.status_code, await answer.get_data(as_text=True)


async def seen(api: Api, path: str, who: str = "project_admin") -> str:
    answer = await api.ask(who, "GET", path)
    assert answer.status_code == 200
    return await answer.get_data(as_text=True)


async def listed(api: Api) -> list[Any]:
    found: list[Any] = await call(api, "GET", f"/projects/{api.project}/monitors", who="viewer")
    return found


def revision(page: str) -> str:
    found = re.search(r'name="revision" value="([0-9a-f]{64})"', page)
    assert found is not None
    return found[1]


async def planned(api: Api, text: str, **form: str) -> str:
    status, page = await send(api, act="plan", bundle=text, **form)
    assert status == 200
    return page


async def test_a_plan_is_shown_and_then_applied(api: Api) -> None:
    await api.new_monitor(slug="web", name="Old", target="http://old/")
    page = await planned(api, TYPED.replace("\n", "\r\n"), take_over="1")
    assert "Plan: 1 to change, 1 to take over" in page
    for text in (
        "<del>people</del>",
        "<ins>the bundle default</ins>",
        "<del>Old</del>",
        "<ins>Web</ins>",
        "tags added → <ins>&lt;b&gt;</ins>",
    ):
        assert text in page
    assert (await listed(api))[0]["name"] == "Old"
    assert 'value="apply"' in page
    given = {"bundle": TYPED, "take_over": "1", "revision": revision(page)}
    status, page = await send(api, act="apply", **given)
    assert status == 200
    assert "Applied: 1 changed, 1 taken over" in page
    assert (await listed(api))[0]["name"] == "Web"
    # The current bundle is now the applied text.
    assert "Current bundle" in page
    page = await planned(api, TYPED)
    assert "Plan: no changes" in page
    assert 'value="apply"' not in page
    assert "revision 1 of default" in page


async def test_the_enter_key_plans_and_never_applies(api: Api) -> None:
    """A browser presses the first button of the form."""
    page = await planned(api, TYPED)
    form = page[page.index('enctype="multipart/form-data"') :]
    buttons = re.findall(r'<button[^>]* name="act" value="(\w+)"', form)
    assert (buttons[0], "apply" in buttons) == ("plan", True)
    page = await seen(api, f"/projects/{api.project}/bundle", "editor")
    assert 'value="plan"' not in page


async def test_a_plan_that_only_changes_owners_is_no_plan_without_changes(api: Api) -> None:
    await api.new_monitor(slug="web", name="Web", target="https://shop.example.org/", tags=["<b>"])
    assert "Plan: no changes" in await planned(api, TYPED)
    page = await planned(api, TYPED, take_over="1")
    assert "Plan: 1 to take over" in page
    assert "no changes" not in page
    assert 'value="apply"' in page


async def test_an_old_plan_is_not_applied(api: Api) -> None:
    """Another person adds a monitor to the bundle after the plan, which the plan would disable."""
    two = TYPED + "  api: {name: Api, type: push}\n"
    page = await planned(api, TYPED)
    old = revision(page)
    await send(api, act="apply", bundle=two, revision=revision(await planned(api, two)))
    status, page = await send(api, act="apply", bundle=TYPED, revision=old, allow="on")
    assert status == 400
    assert "has changed since the plan was made" in page
    assert "Plan: 1 to disable" in page
    assert [one["enabled"] for one in await listed(api)] == [True, True]
    # A form without a plan is no confirmation either.
    status, page = await send(api, act="apply", bundle=TYPED, allow="on")
    assert status == 400
    # The new plan needs its confirmation.
    new = revision(page)
    assert 'name="disabled" value="1"' in page
    status, page = await send(api, act="apply", bundle=TYPED, revision=new, disabled="1")
    assert status == 400
    assert "Confirm that 1 object will be disabled." in page
    assert [one["enabled"] for one in await listed(api)] == [True, True]
    status, page = await send(api, act="apply", bundle=TYPED, revision=new, allow="on")
    assert (status, "Applied: 1 disabled" in page) == (200, True)


async def test_a_plan_of_another_name_is_not_applied(api: Api) -> None:
    page = await planned(api, TYPED, name="shop")
    given = {"bundle": TYPED, "revision": revision(page), "name": "jobs"}
    status, page = await send(api, act="apply", **given)
    assert status == 400
    assert "has changed since the plan was made" in page
    assert await listed(api) == []
    given["revision"] = revision(page)
    assert (await send(api, act="apply", **given))[0] == 200
    (made,) = await listed(api)
    assert made["management"]["path"] == "jobs"


async def test_bundles_have_names(api: Api) -> None:
    push = HEAD + "  api: {name: Api, type: push}\n"
    for name, text in (("shop", TYPED), ("jobs", push)):
        page = await planned(api, text, name=name)
        assert "Plan: 1 to add" in page
        assert "to disable" not in page
        await send(api, act="apply", bundle=text, name=name, revision=revision(page))
        page = await seen(api, f"/projects/{api.project}/bundle")
    assert 'value="default"' in page, "neither of two bundles is preferred"
    for row in ('<th scope="row">jobs</th><td>1 monitor</td>', "revision 1 of jobs"):
        assert row in page
    status, page = await send(api, act="plan", bundle=TYPED, name="a/b")
    assert status == 400
    assert "Name: must have 1 to 63 letters" in page
    status, page = await send(api, act="plan", bundle=TYPED.replace("Web,", "W,"), name="jobs")
    assert "the bundle shop manages it, and name would change" in page


async def test_a_large_bundle_is_applied_in_the_background(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "APPLIED_AT_ONCE_MOST", 0)
    path = f"/projects/{api.project}/bundle"
    given = {"bundle": TYPED, "revision": revision(await planned(api, TYPED))}
    assert (await send(api, act="apply", **given))[0] == 303
    answer = await api.ask("project_admin", "GET", path)
    page = await answer.get_data(as_text=True)
    assert '<progress value="0" max="1"' in page
    assert "Refresh" in answer.headers
    assert "You can close this page" in page
    assert "Waits for a process, or compares the bundle with the project, since 0\u202fs." in page
    assert " left</p>" not in page
    # Until its end, a second one is refused.
    status, page = await send(api, act="apply", **given)
    assert status == 400
    assert "Another bundle is being applied to the project" in page
    assert "Another bundle" in page, "the input is kept"
    await operation_runner(api.pool, api.context.keyring, api.context.clock).pass_once()
    page = await seen(api, path)
    assert "<progress" not in page
    assert "revision 1 of default" in page
    assert "<td>1 added</td>" in page


async def report(api: Api, *samples: tuple[int, int], age: int = 60) -> None:
    """Reports samples of (seconds ago, written of 200 objects) of the running application."""
    now, log = api.context.clock(), None
    for ago, done in samples:
        steps = [("create", "monitor", f"<b>{done}"), ("orphan", "service", "old")]
        log = extended(log, Instant(now - ago * SECOND), done, 200, steps)
    assert log is not None
    async with api.pool.transaction("report") as tx:
        await tx.execute(
            "update operations set done = %(done)s, total = 200, progress = %(progress)s,"
            " created_at = at(%(at)s) where state = 'applying'",
            done=log.done,
            progress=msgspec.json.encode(log).decode(),
            at=now - age * SECOND,
        )


async def test_a_running_application_shows_its_steps_and_a_measured_time_left(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "APPLIED_AT_ONCE_MOST", 0)
    path = f"/projects/{api.project}/bundle"
    await send(api, act="apply", bundle=TYPED, revision=revision(await planned(api, TYPED)))
    await report(api, (0, 150))
    page = await seen(api, path)
    assert "<b>150 of 200</b> objects</p>" in page, "one sample has no rate"
    assert "Runs for 60\u202fs." in page
    assert "add      monitor  &lt;b&gt;150\n" in page
    assert "disable  service  old</pre>" in page
    await report(api, (10, 100), (0, 150))
    page = await seen(api, path)
    assert "<b>150 of 200</b> objects, about 10\u202fs left</p>" in page
    assert "Runs for 60\u202fs, 5.0 objects per second." in page
    await report(api, (10, 100), (0, 200))
    page = await seen(api, path)
    assert "<b>200 of 200</b> objects</p>" in page
    assert "All objects are written. The changes are being committed." in page


async def test_the_differences_of_a_revision_are_linked_and_shown(api: Api) -> None:
    path = f"/projects/{api.project}/bundle"
    for text in (TYPED, TYPED.replace("name: Web", "name: '<i>Web'")):
        plan = await planned(api, text, name="shop")
        await send(api, act="apply", bundle=text, name="shop", revision=revision(plan))
    page = await seen(api, path)
    link = f"{path}?name=shop&amp;revision=2#plan-title"
    assert page.count(f'href="{link}"') == 2, "in the first lines, and in the list"
    page = await seen(api, f"{path}?name=shop&revision=2")
    assert "Revision 2 of shop: 1 changed" in page
    assert "<del>Web</del>" in page
    assert "<ins>&lt;i&gt;Web</ins>" in page
    assert 'value="apply"' not in page
    page = await seen(api, f"{path}?name=shop&revision=1")
    assert "Revision 1 of shop: 1 added" in page
    for query, status in (
        ("name=shop&revision=3", 404),
        ("name=other&revision=1", 404),
        ("name=a/b&revision=1", 400),
        ("name=shop&revision=99999999999", 400),
    ):
        answer = await api.ask("project_admin", "GET", f"{path}?{query}")
        assert answer.status_code == status, query
    # As the plan, only for those who can apply a bundle.
    assert (await api.ask("editor", "GET", f"{path}?name=shop&revision=2")).status_code == 403
    assert "Differences" not in await seen(api, path, "editor")
    async with api.pool.transaction("before") as tx:
        await tx.execute("update bundle_revisions set changes = null")
    page = await seen(api, path)
    assert "revision=2" not in page
    assert "not stored" in page
    answer = await api.ask("project_admin", "GET", f"{path}?name=shop&revision=2")
    assert answer.status_code == 404


async def test_a_failure_in_the_background_is_shown(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "APPLIED_AT_ONCE_MOST", 0)
    old = revision(await planned(api, TYPED))
    await api.new_monitor(slug="web", name="Web 2", target="http://other/")
    await send(api, act="apply", bundle=TYPED, revision=old)
    await operation_runner(api.pool, api.context.keyring, api.context.clock).pass_once()
    page = await seen(api, f"/projects/{api.project}/bundle")
    assert "The last application failed at" in page
    assert "people edit it, and name" in page
    assert [one["name"] for one in await listed(api)] == ["Web 2"]


async def test_an_error_is_shown_with_its_line_and_the_text_kept(api: Api) -> None:
    for typed, said in (
        (TYPED + "  web: {}\n", "Line 6, column 3: &#39;web&#39; is given twice."),
        (TYPED.replace("Web,", "Web, colour: red,"), "Line 5, column 20: monitors.web.colour: "),
        (TYPED.replace("shop\n", "mill\n", 1), "Line 3, column 1: project: is another than"),
    ):
        status, page = await send(api, act="plan", bundle=typed)
        assert status == 400
        assert said in page
        assert "colour" in page or "colour" not in typed
        assert "Your input" in page
    assert await listed(api) == []


async def test_an_editor_reads_it_and_a_viewer_does_not(api: Api) -> None:
    path = f"/projects/{api.project}/bundle"
    page = await seen(api, path, "editor")
    assert "readonly" in page
    assert 'value="plan"' not in page
    assert (await send(api, "editor", act="plan", bundle=TYPED))[0] == 403
    assert (await api.ask("viewer", "GET", path)).status_code == 403


async def test_pages_of_managed_objects_show_the_bundle(api: Api) -> None:
    document = bundle({"web": WEB}, {"shop": {"monitors": ["web"], "sli": ["web"]}})
    apply, name = f"/projects/{api.project}/bundle/apply", {"name": "shop"}
    await call(api, "POST", apply, document, who="project_admin", query=name)
    path = f"/monitors/{(await listed(api))[0]['id']}"
    services = await call(api, "GET", f"/projects/{api.project}/services", who="viewer")
    service = f"/services/{services[0]['service']['id']}"
    for one in (path, service):
        page = await seen(api, one)
        assert "Managed by the bundle shop as" in page
        for link in ("/edit", "/delete", "/declaration", "/alerting"):
            assert f'href="{one}{link}"' not in page
    await call(api, "POST", apply, bundle({}), who="project_admin", query=name)
    for one in (path, service):
        page = await seen(api, one)
        assert "no longer in" in page
        assert f'href="{one}/delete"' in page


async def test_a_file_is_planned_in_place_of_the_text(api: Api) -> None:
    head = "--b\r\nContent-Disposition: form-data; name="
    texts = {"act": "plan", "name": "shop", "bundle": "not: this"}
    parts = [f'{head}"{name}"\r\n\r\n{text}\r\n' for name, text in texts.items()]
    path = f"/projects/{api.project}/bundle"
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    for file, status, said in (
        (TYPED.encode(), 200, "Plan: 1 to add"),
        (b"\xef\xbb\xbf" + TYPED.replace("\n", "\r\n").encode(), 200, "Plan: 1 to add"),
        (b"\xff", 400, "File: is not UTF-8."),
        (b"", 400, "monitors"),
    ):
        first = f'{head}"file"; filename="b.yaml"\r\n\r\n'
        data = "".join(parts).encode() + first.encode() + file + b"\r\n--b--\r\n"
        answer = await api.ask("project_admin", "POST", path, data=data, headers=headers)
        page = await answer.get_data(as_text=True)
        assert (answer.status_code, said in page) == (status, True), file
        assert 'value="shop"' in page


async def test_a_waiting_application_is_stopped_at_once(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "APPLIED_AT_ONCE_MOST", 0)
    path = f"/projects/{api.project}/bundle"
    await send(api, act="apply", bundle=TYPED, revision=revision(await planned(api, TYPED)))
    page = await seen(api, path)
    assert "Stop and roll back" in page
    assert "Stop and roll back" not in await seen(api, path, "editor")
    found = re.search(r'name="operation" value="([0-9a-f-]{36})"', page)
    assert found is not None
    assert (await send(api, "editor", act="stop", operation=found[1]))[0] == 403
    assert (await send(api, act="stop", operation="x"))[0] == 404
    assert (await send(api, act="stop", operation=found[1]))[0] == 303
    page = await seen(api, path)
    assert "The last application failed" in page
    assert "without a change: stopped by " in page
    assert "<progress" not in page
    await operation_runner(api.pool, api.context.keyring, api.context.clock).pass_once()
    assert await listed(api) == []
    # It has ended: another request changes nothing.
    assert (await send(api, act="stop", operation=found[1]))[0] == 303


def test_fields_are_shown_by_entry_and_secrets_are_not() -> None:
    def change(name: str, before: Any, after: Any) -> FieldChange:
        return FieldChange(name=name, from_=before, to=after)

    shown = shown_fields(
        [
            change("conditions", ["[STATUS] == 200", "a"], ["a", "[STATUS] < 300"]),
            change("tags", ["a", "b"], ["b", "a"]),
            change("tags", ["a", "b"], ["b", "a", "c"]),
            change("tags", ["a", "b", "c"], ["a", "c"]),
            change("config.headers", None, {"Cookie": "hunter2"}),
            change(
                "config.headers",
                {"Accept": "x", "Cookie": "s=hunter2", "Old": "1"},
                {"Accept": "y", "Cookie": "s=hunter3"},
            ),
            change("config.scenario", {"steps": ["hunter2"]}, {"steps": ["hunter3"]}),
            FieldChange(name="config", to={"scenario": {"steps": ["hunter2"]}, "body": "b"}),
        ]
    )
    assert [(one.name, one.before, one.after) for one in shown] == [
        ("conditions", "[STATUS] == 200", "[STATUS] < 300"),
        ("tags", "a, b", "b, a"),
        ("tags", "a, b", "b, a, c"),
        ("tags", "b", None),
        ("config.headers", "(not shown)", "(not shown)"),
        ("config.headers.Accept", "x", "y"),
        ("config.headers.Cookie", "(not shown)", "(not shown)"),
        ("config.headers.Old", "1", None),
        ("config.scenario", "(not shown)", "(not shown)"),
        ("config.scenario", None, "(not shown)"),
        ("config.body", None, "b"),
    ]


ON_CALL = """format: 3
organization: acme
project: shop
channels:
  ops: {name: Ops, type: ntfy, config: {topic: ops, token_ref: ntfy}}
schedules:
  day: {shift_seconds: 1d, anchor_at: 2026-01-05T08:00:00Z, participants: [{channel: ops}]}
escalation_policies:
  night: {steps: [{after_seconds: 0, targets: [{schedule: day}]}]}
services:
  shop: {escalation_policy: night}
routes:
  default: {escalation_policy: night}
"""


async def test_on_call_objects_are_shown_as_managed_and_stay_as_orphans(api: Api) -> None:
    home = f"/projects/{api.project}"
    body = {"name": "ntfy", "value": "tk_1"}
    await call(api, "POST", f"{home}/secrets", body, 201)
    page = await planned(api, ON_CALL)
    assert "Plan: 5 to add" in page
    status, page = await send(api, act="apply", bundle=ON_CALL, revision=revision(page))
    assert status == 200
    assert ">1 channel<" in await seen(api, f"{home}/secrets")
    assert "1 service, 4 on-call objects" in page
    page = await seen(api, f"{home}/bundle")
    assert "0 monitors, 1 service and 4 on-call objects" in page
    said = "Managed by the bundle default as "
    page = await seen(api, f"{home}/on-call")
    assert f"{said}day" in page
    assert f"{said}night" in page
    assert "/edit" not in page.split("<main")[1]
    page = await seen(api, f"{home}/alert-routes")
    assert f"{said}routes" in page
    assert "Edit routes" not in page
    (channel,) = await call(api, "GET", f"{home}/notification-channels")
    page = await seen(api, f"{home}/channels?show=edit&uid={channel['id']}")
    assert f"{said}ops" in page
    assert 'value="save"' not in page
    empty = ON_CALL.split("channels:", maxsplit=1)[0] + "channels: {}\n"
    page = await planned(api, empty)
    assert "Plan: 1 to leave to people" in page
    assert "no longer in the bundle; people edit it" in page
    assert 'name="disabled" value="0"' in page
    await send(api, act="apply", bundle=empty, revision=revision(page))
    page = await seen(api, f"{home}/channels?show=edit&uid={channel['id']}")
    assert "No longer in the bundle default." in page
    assert 'value="save"' in page
