"""Bundles of format 3 in the API: webhooks of the project."""

import json
import random
import re
from typing import Any
from urllib.parse import urlencode

import pytest

from leadline.probes.senders.webhook import secret_from
from leadline.storage.engine.pools import Tx
from leadline.storage.notifications.tables import webhooks as table
from tests.bundles.test_bundle_background_api import ASYNC, operation, runner
from tests.bundles.test_bundle_on_call_api import bundle
from tests.bundles.test_bundles_api import TAKE, ask, counted, export, release
from tests.support.app.cast import Api
from tests.support.app.serving import call
from tests.support.run import effort

WHO = "org_admin"
VALUE = secret_from(b"canary-31" * 3)
URL = "https://hook.example.org/leadline?t=path-31"
DEPLOY: dict[str, Any] = {"url": URL, "secret_ref": "signing"}
SAID = "webhooks.deploy: must be applied by an administrator of the organization"


async def secrets(api: Api, project: Any = None) -> None:
    values = {"signing": VALUE, "other": secret_from(b"o" * 32), "text": "no signing secret"}
    for name, value in values.items():
        body = {"name": name, "value": value}
        await call(api, "POST", f"/projects/{project or api.project}/secrets", body, 201)


async def plan(api: Api, document: dict[str, Any], query: str = "", status: int = 200) -> Any:
    path = f"/projects/{api.project}/bundle/plan{query}"
    return await call(api, "POST", path, document, status, who=WHO)


async def apply(api: Api, document: dict[str, Any], query: str = "") -> dict[str, str]:
    planned = await plan(api, document, query)
    path = f"/projects/{api.project}/bundle/apply{query}"
    found = await call(api, "POST", path, document, who=WHO)
    assert planned["changes"] == found["changes"]
    again = await plan(api, document, query)
    assert {one["action"] for one in again["changes"]} <= {"unchanged"}
    return {one["uid"]: one["action"] for one in found["changes"] if one["kind"] == "webhook"}


async def exported(api: Api) -> Any:
    return await call(api, "GET", f"/projects/{api.project}/bundle", who=WHO)


async def make(api: Api, project: Any = None, **given: Any) -> Any:
    body = {"url": URL, **given} | ({} if project is None else {"project_id": str(project)})
    return await call(api, "POST", f"/organizations/{api.org}/webhooks", body, 201, who=WHO)


async def listed(api: Api) -> list[Any]:
    found: list[Any] = await call(api, "GET", f"/organizations/{api.org}/webhooks", who=WHO)
    return found


async def test_a_webhook_comes_changes_and_is_deleted(api: Api) -> None:
    await secrets(api)
    document = bundle(webhooks={"deploy": DEPLOY})
    assert (await plan(api, document))["changes"] == [
        {
            "kind": "webhook",
            "uid": "deploy",
            "action": "create",
            "fields": [{"name": "url", "to": URL}, {"name": "secret_ref", "to": "signing"}],
        }
    ]
    assert await apply(api, document) == {"deploy": "create"}
    assert await exported(api) == {**document, "monitors": {}}
    (made,) = await listed(api)
    assert (made["url"], made["enabled"], made["secret_ref"], made["managed_by"]) == (
        URL,
        True,
        "signing",
        "api",
    )
    assert (made["project_id"], made["created_by_email"]) == (
        str(api.project),
        "org_admin@example.com",
    )
    path = f"/webhooks/{made['id']}"
    for method, body in (("PATCH", {"enabled": False}), ("DELETE", None)):
        assert await call(api, method, path, body, 409, who=WHO) == {"error": "managed_by_file"}
    changed = bundle(
        webhooks={"deploy": {"url": "https://b.example.org/", "enabled": False, **OTHER}}
    )
    assert (await plan(api, changed))["changes"][0]["fields"] == [
        {"name": "url", "from": URL, "to": "https://b.example.org/"},
        {"name": "enabled", "from": True, "to": False},
        {"name": "secret_ref", "from": "signing", "to": "other"},
    ]
    assert await apply(api, changed) == {"deploy": "update"}
    (now,) = await listed(api)
    assert (now["id"], now["url"], now["enabled"]) == (made["id"], "https://b.example.org/", False)
    answer = await call(api, "DELETE", f"/projects/{api.project}", None, 409, who=WHO)
    assert answer == {"error": "managed_by_file: webhook deploy: managed by api"}
    # A bundle without the section leaves it alone.
    assert await apply(api, bundle(monitors={})) == {}
    empty = bundle(webhooks={})
    assert (await plan(api, empty))["changes"] == [
        {
            "kind": "webhook",
            "uid": "deploy",
            "action": "orphan",
            "fields": [{"name": "deleted", "from": False, "to": True}],
        }
    ]
    assert await apply(api, empty) == {"deploy": "orphan"}
    assert await listed(api) == []
    assert await api.rows("select from bundle_objects") == []
    # It is a new one, when it is named again.
    assert await apply(api, document) == {"deploy": "create"}


OTHER = {"secret_ref": "other"}


async def test_a_webhook_that_another_process_deleted_leaves_no_mark(api: Api) -> None:
    await secrets(api)
    await apply(api, bundle(webhooks={"deploy": DEPLOY, "stays": DEPLOY}))
    (first, second) = await listed(api)

    async def delete(tx: Tx) -> None:
        # A process of the previous release knows no bundle of a webhook.
        await tx.execute("delete from webhooks where uid = %(uid)s", uid=first["id"])

    await api.pool.transact("delete", delete)
    assert await apply(api, bundle(webhooks={"stays": DEPLOY})) == {"stays": "unchanged"}
    assert await api.rows("select uid::text from bundle_objects") == [(second["id"],)]


async def test_only_an_administrator_of_the_organization_changes_webhooks(api: Api) -> None:
    await secrets(api)
    document = bundle(webhooks={"deploy": DEPLOY})
    for verb in ("plan", "apply"):
        assert (await ask(api, verb, document, 400))["error"].startswith(SAID)
    await apply(api, document)
    assert (await ask(api, "apply", document))["changes"][0]["action"] == "unchanged"
    for other in ({}, {"deploy": {**DEPLOY, "enabled": False}}):
        for verb in ("plan", "apply"):
            answer = await ask(api, verb, bundle(webhooks=other), 400)
            assert answer["error"].startswith(SAID)
    await release(api)
    assert (await ask(api, "plan", document, 400, TAKE))["error"].startswith(SAID)
    # An editor gets an export without webhooks, which leaves them alone.
    assert (await exported(api))["webhooks"] == {"hook-example-org": DEPLOY}
    mine = await export(api)
    assert mine == {"format": 1, "organization": "acme", "project": "shop", "monitors": {}}
    assert await apply(api, {**mine, "format": 3}) == {}
    assert len(await listed(api)) == 1


async def test_a_refusal_of_others_tells_nothing_about_webhooks(api: Api) -> None:
    await secrets(api)
    await make(api, api.project)
    two = "https://two.example.org/"
    for _ in range(2):
        await make(api, api.project, url=two)
    await apply(api, bundle(webhooks={"mine": {**DEPLOY, "url": "https://mine.example.org/"}}))
    for url in (URL, two, "https://mine.example.org/", "https://none.example.org/"):
        for entry in ({"url": url}, {"url": url, "secret_ref": "signing", "enabled": False}):
            for uid in ("deploy", "mine"):
                document = bundle(webhooks={uid: entry})
                answer = await ask(api, "plan", document, 400, "?name=other")
                assert answer["error"].startswith(SAID.replace("deploy", uid))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"url": "ftp://x.test"}, "url: must begin with http"),
        ({"url": "https://u:canary@x.test/"}, "url: must not carry a user name"),
        ({"url": "https://x.test/" + "a" * 2_048}, "url: "),
        ({"url": None}, "url: "),
        ({"secret_ref": "gone"}, "secret_ref: names no secret of this project"),
        ({"secret_ref": "No"}, "secret_ref: must match"),
        ({"secret_ref": "text"}, "secret_ref: names a secret whose value must be whsec_"),
        ({"secret_ref": ""}, "secret_ref: must name a secret of the project"),
        ({"secret": VALUE}, "secret"),
        ({"project_id": "x"}, "project_id"),
        ({"enabled": "yes"}, "enabled: "),
    ],
)
async def test_a_wrong_webhook_is_named(api: Api, entry: dict[str, Any], said: str) -> None:
    await secrets(api)
    document = bundle(webhooks={"deploy": {**DEPLOY, **entry}})
    answer = await plan(api, document, status=400)
    assert answer["error"].startswith(f"webhooks.deploy.{said}")
    assert "canary" not in answer["error"]


async def test_an_entry_without_its_url_and_one_of_format_2_are_named(api: Api) -> None:
    answer = await plan(api, bundle(webhooks={"deploy": {"secret_ref": "signing"}}), status=400)
    assert answer["error"].startswith("webhooks.deploy.url: ")
    second = {**bundle(monitors={}, webhooks={}), "format": 2}
    answer = await plan(api, second, status=400)
    assert answer["error"].startswith("webhooks: is not known here: webhooks need format 3")


async def test_a_limit_of_the_organization_is_refused(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await secrets(api)
    await apply(api, bundle(webhooks={"a": DEPLOY, "b": DEPLOY}))

    async def nearly_full(*_: Any) -> int:
        return 50

    monkeypatch.setattr(table, "count_webhooks", nearly_full)
    more = bundle(webhooks={"a": DEPLOY, "b": DEPLOY, "c": DEPLOY})
    said = {"error": "webhooks: would make more than 50 of the organization"}
    assert await plan(api, more, status=400) == said
    # The deleted ones leave room.
    assert await apply(api, bundle(webhooks={"a": DEPLOY, "c": DEPLOY})) == {
        "a": "unchanged",
        "b": "orphan",
        "c": "create",
    }
    answer = await plan(api, bundle(webhooks={f"x{n}": DEPLOY for n in range(51)}), status=400)
    assert answer["error"] == "webhooks: must have at most 50 entries"


async def test_webhooks_of_others_are_neither_listed_nor_touched(api: Api) -> None:
    await secrets(api)
    await make(api)
    await make(api, api.projects["acme/mill"][1])
    before = await listed(api)
    assert "webhooks" not in await exported(api)
    # The same URL is another webhook, also with a takeover.
    assert await apply(api, bundle(webhooks={"deploy": DEPLOY}), TAKE) == {"deploy": "create"}
    assert await apply(api, bundle(webhooks={}), TAKE) == {"deploy": "orphan"}
    assert await listed(api) == before
    assert counted(await release(api)) == {}


async def test_a_webhook_of_people_is_taken_over_and_keeps_its_own_secret(api: Api) -> None:
    await secrets(api)
    made = await make(api, api.project)
    (sealed,) = await api.rows("select secret_ciphertext from webhooks")
    document = await exported(api)
    # The path of a URL can be confidential, and becomes no name.
    assert document["webhooks"] == {"hook-example-org": {"url": URL}}
    assert await apply(api, document) == {"hook-example-org": "unchanged"}
    (now,) = await listed(api)
    assert "managed_by" not in now
    off = bundle(webhooks={"deploy": {"url": URL, "enabled": False}})
    answer = await plan(api, off, status=409)
    assert answer["error"].startswith("webhooks.deploy: people edit it, and enabled would change")
    assert await apply(api, off, TAKE) == {"deploy": "update"}
    (now,) = await listed(api)
    assert (now["id"], now["enabled"], now["managed_by"]) == (made["id"], False, "api")
    assert await api.rows("select secret_ciphertext from webhooks") == [sealed]
    # As of a channel, the secret is given again for another host.
    moved = bundle(webhooks={"deploy": {"url": "https://b.example.org/"}})
    answer = await plan(api, moved, status=400)
    assert answer["error"].startswith("webhooks.deploy.secret_ref: must name a secret of the")
    near = bundle(webhooks={"deploy": {"url": "https://hook.example.org/b"}})
    assert await apply(api, near) == {"deploy": "update"}
    moved["webhooks"]["deploy"]["secret_ref"] = "signing"
    assert await apply(api, moved) == {"deploy": "update"}
    assert await api.rows("select secret_ciphertext from webhooks") == [(None,)]
    # The webhook lost its own secret.
    del moved["webhooks"]["deploy"]["secret_ref"]
    answer = await plan(api, moved, status=400)
    assert answer["error"].endswith("the webhook has no own one")
    assert counted(await release(api, {"webhooks": ["deploy"]})) == {"webhooks": 1}
    await call(api, "PATCH", f"/webhooks/{made['id']}", {"enabled": True}, who=WHO)
    await call(api, "DELETE", f"/webhooks/{made['id']}", None, 204, who=WHO)


async def test_an_export_without_a_secret_names_the_entry_in_an_empty_project(api: Api) -> None:
    mill = api.projects["acme/mill"][1]
    await secrets(api, mill)
    await make(api, api.project)
    desk = {"type": "slack", "name": "Desk", "config": {"url": URL}}
    await call(api, "POST", f"/projects/{api.project}/notification-channels", desk, 201)
    document = {**await exported(api), "project": "mill"}
    path = f"/projects/{mill}/bundle"
    for section, field in (("channels", "config"), ("webhooks", "secret_ref")):
        ((uid, _),) = document[section].items()
        answer = await call(api, "POST", f"{path}/apply", document, 400, who=WHO)
        assert answer["error"].startswith(f"{section}.{uid}.{field}"), answer
        if section == "channels":
            del document[section]
    document["webhooks"]["hook-example-org"]["secret_ref"] = "signing"
    await call(api, "POST", f"{path}/apply", document, who=WHO)
    assert (await call(api, "GET", path, who=WHO))["webhooks"] == document["webhooks"]


async def test_it_is_open_which_of_two_webhooks_an_entry_means(api: Api) -> None:
    await secrets(api)
    await make(api, api.project)
    await make(api, api.project)
    answer = await plan(api, bundle(webhooks={"deploy": DEPLOY}), TAKE, 409)
    assert answer["error"].startswith("webhooks.deploy: ")
    assert "the URL is that of 2 objects" in answer["error"]


async def test_a_refusal_has_no_url(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    await secrets(api)
    await make(api, api.project)
    await make(api, api.project)
    document = bundle(webhooks={"deploy": DEPLOY})
    said = [await plan(api, document, status=409)]
    path = f"/api/v1/projects/{api.project}/bundle/apply"
    begun = await (await api.ask(WHO, "POST", path, document, headers=ASYNC)).get_json()
    await runner(api).pass_once()
    said.append(await operation(api, begun["id"], WHO))
    assert said[1]["state"] == "failed"
    page = await api.ask("editor", "GET", f"/projects/{api.project}/bundle")
    said.append(await page.get_data(as_text=True))
    assert "The last application failed" in said[2]
    said += await api.rows("select error from operations")
    assert "the URL is that of 2 objects" in str(said[-1])
    for secret in (VALUE, "path-31", "hook.example"):
        assert secret not in str(said)
    for secret in (VALUE, "path-31"):
        assert secret not in caplog.text


async def test_a_secret_that_signs_is_not_deleted_and_renamed_with_its_webhook(api: Api) -> None:
    await secrets(api)
    await apply(api, bundle(webhooks={"deploy": DEPLOY}))
    path = f"/projects/{api.project}/secrets"
    assert await call(api, "DELETE", f"{path}/signing", None, 409) == {"error": "secret_in_use"}
    answer = await call(api, "PATCH", f"{path}/signing", {"name": "key"}, 409)
    assert answer == {"error": "managed_by_file: webhook deploy: managed by api"}
    used = {one["name"]: one["used_by"] for one in await call(api, "GET", path)}
    assert used["signing"] == {"total": 1, "file_managed": 1}
    page = await api.ask("editor", "GET", f"/projects/{api.project}/secrets")
    assert "1 webhook<" in await page.get_data(as_text=True)
    await release(api)
    await call(api, "PATCH", f"{path}/signing", {"name": "key"}, 204)
    assert (await exported(api))["webhooks"]["hook-example-org"]["secret_ref"] == "key"
    await call(api, "DELETE", f"{path}/key", None, 409)
    # The deletion of the project deletes both.
    await call(api, "DELETE", f"/projects/{api.project}", None, 204, who=WHO)
    assert await listed(api) == []
    assert await api.rows("select from project_secrets") == []


async def test_no_output_has_the_value_of_the_secret(api: Api) -> None:
    await secrets(api)
    document = bundle(webhooks={"deploy": DEPLOY})
    said = [await plan(api, document), await apply(api, document), await exported(api)]
    said += [await listed(api), await apply(api, bundle(webhooks={"deploy": {**DEPLOY, **OTHER}}))]
    stored = [
        await api.rows(f"select * from {name}")
        for name in ("bundle_revisions", "audit_entries", "operations", "bundle_applications")
    ]
    assert VALUE not in str((said, stored))
    # Editors read revisions, and no URLs of webhooks.
    moved = {**DEPLOY, "url": "https://hook.example.org/moved-31"}
    await apply(api, bundle(webhooks={"deploy": moved}))
    revisions = str(await api.rows("select changes from bundle_revisions"))
    assert '"from":"signing","to":"other"' in revisions
    assert '{"name":"url"}' in revisions
    assert "path-31" not in revisions
    assert "moved-31" not in revisions


async def test_the_screens_say_who_manages_a_webhook(api: Api) -> None:
    await secrets(api)
    await apply(api, bundle(webhooks={"deploy": DEPLOY}))
    path = f"/organizations/{api.org}/webhooks"
    page = await (await api.ask(WHO, "GET", path)).get_data(as_text=True)
    assert "managed by a bundle" in page
    assert 'value="disable"' not in page
    assert "show=delete" not in page
    # Beside the button of the row, the menu would contain only the same button.
    assert '<details class="menu end phone-only">' in page
    (made,) = await listed(api)
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    data = f"act=delete&uid={made['id']}".encode()
    answer = await api.ask(WHO, "POST", path, data=data, headers=form)
    page = await (await api.ask(WHO, "GET", answer.headers["Location"])).get_data(as_text=True)
    assert "Managed by a bundle; edit it there." in page
    assert len(await listed(api)) == 1


async def test_the_screen_confirms_a_deletion(api: Api) -> None:
    await secrets(api)
    web = {"name": "Web", "type": "push"}
    await apply(api, bundle(monitors={"web": web}, webhooks={"deploy": DEPLOY}))
    path = f"/projects/{api.project}/bundle"
    form = {"Content-Type": "application/x-www-form-urlencoded"}

    async def send(**given: str) -> str:
        data = urlencode(given).encode()
        return await (await api.ask(WHO, "POST", path, data=data, headers=form)).get_data(
            as_text=True
        )

    text = json.dumps(bundle(webhooks={}))
    page = await send(act="plan", bundle=text)
    assert "Plan: 1 to delete" in page
    assert "1 webhook will be deleted, because the bundle no longer contains it" in page
    assert "<td>no longer in the bundle; will be deleted with its waiting deliveries</td>" in page
    text = json.dumps(bundle(monitors={}, webhooks={}))
    page = await send(act="plan", bundle=text)
    # A process of the previous release reads this field too.
    assert 'name="disabled" value="2"' in page
    assert "Plan: 1 to disable, 1 to delete" in page
    (shown,) = re.findall('name="revision" value="([0-9a-f]+)"', page)
    page = await send(act="apply", bundle=text, revision=shown, disabled="2")
    assert "Confirm that 1 object will be disabled and 1 webhook deleted." in page
    assert len(await listed(api)) == 1
    page = await send(act="apply", bundle=text, revision=shown, disabled="2", allow="on")
    assert "Applied: 1 disabled, 1 deleted" in page
    assert await listed(api) == []


@pytest.mark.parametrize("seed", effort.varied(range(3), range(40)))
async def test_an_export_creates_the_same_webhooks(api: Api, seed: int) -> None:
    mill = api.projects["acme/mill"][1]
    await secrets(api)
    await secrets(api, mill)
    await make(api)
    await apply(api, bundle(webhooks=random_webhooks(random.Random(seed))))
    if seed % 2:
        await release(api)
        first = random_webhooks(random.Random(f"{seed} changed"))
        renamed = {f"y{uid}": {**one, "url": f"{one['url']}y"} for uid, one in first.items()}
        await apply(api, bundle(webhooks=renamed))
    whole = await exported(api)
    assert set((await apply(api, whole, "?name=any")).values()) <= {"unchanged"}
    copy = {**whole, "format": 3, "project": "mill"}
    path = f"/projects/{mill}/bundle"
    await call(api, "POST", f"{path}/apply", copy, who=WHO)
    found = await call(api, "GET", path, who=WHO)
    assert {**found, "format": 3} == copy
    again = await call(api, "POST", f"{path}/plan", copy, who=WHO)
    assert {one["action"] for one in again["changes"]} <= {"unchanged"}


def random_webhooks(
    rnd: random.Random, names: tuple[str, ...] = ("signing", "other")
) -> dict[str, Any]:
    """Returns random valid entries, without the defaults. URLs can be equal."""
    return {
        f"w{n}": {
            "url": rnd.choice(
                [URL, "http://10.0.0.1:8080/x", "https://ü.example/ü", "https://[::1]/"]
            ),
            **rnd.choice([{}, {"enabled": False}]),
            "secret_ref": rnd.choice(names),
        }
        for n in range(rnd.randint(0, 5))
    }


@pytest.mark.parametrize("who", ["project_admin", WHO])
async def test_in_the_background_the_right_is_that_of_who_began(api: Api, who: str) -> None:
    await secrets(api)
    path = f"/api/v1/projects/{api.project}/bundle/apply"
    document = bundle(webhooks={"deploy": DEPLOY})
    answer = await api.ask(who, "POST", path, document, headers=ASYNC)
    begun = await answer.get_json()
    assert answer.status_code == 202, begun
    await runner(api).pass_once()
    ended = await operation(api, begun["id"], who)
    if who == WHO:
        assert ended["state"] == "succeeded"
        (change,) = ended["result"]["changes"]
        assert change["fields"] == [{"name": "url"}, {"name": "secret_ref", "to": "signing"}]
        assert (await listed(api))[0]["created_by_email"] == "org_admin@example.com"
        return
    assert ended["state"] == "failed"
    assert SAID in str(ended)
    assert await listed(api) == []
