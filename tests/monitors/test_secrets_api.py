"""Project secrets in the API: values are never returned, and a referenced secret cannot be
deleted."""

from typing import Any

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.monitors.rules.secret import (
    SECRETS_OF_PROJECT_MOST,
    references,
    secret_name_fault,
    secret_value_fault,
)
from leadline.storage.monitors.tables import secrets as table
from tests.support.app.cast import Api
from tests.support.peers.job_queue import polled
from tests.support.peers.real_servers import pems

VALUE = "correct horse battery staple"


def path_of(api: Api, name: str = "") -> str:
    return f"/api/v1/projects/{api.project}/secrets{'/' if name else ''}{name}"


async def listed(api: Api) -> Any:
    return await (await api.ask("viewer", "GET", path_of(api))).get_json()


async def test_a_secret_is_listed_by_name_without_its_value(api: Api) -> None:
    made = await api.ask("editor", "POST", path_of(api), {"name": "db", "value": VALUE})
    assert made.status_code == 201
    assert set(await made.get_json()) == {"id", "name", "created_at"}
    (one,) = await listed(api)
    assert one["used_by"] == {"total": 0, "file_managed": 0}
    assert one["rotated_at"] is None
    everything = await api.rows("select value_ciphertext from project_secrets")
    assert VALUE.encode() not in everything[0][0]
    assert VALUE not in str(one)


async def test_a_name_is_taken_once_in_a_project(api: Api) -> None:
    await api.new_secret(name="db")
    again = await api.ask("editor", "POST", path_of(api), {"name": "db", "value": VALUE})
    assert again.status_code == 409
    assert await again.get_json() == {"error": "secret_exists"}


@pytest.mark.parametrize("name", ["", "Db", "1db", "d_b", "d" * 64, "db\n", "ä"])
async def test_a_name_outside_the_grammar_is_refused_by_its_field(api: Api, name: str) -> None:
    answer = await api.ask("editor", "POST", path_of(api), {"name": name, "value": VALUE})
    assert answer.status_code == 400
    assert (await answer.get_json())["error"].startswith("name")


@pytest.mark.parametrize("value", ["", "x" * 4097, "ä" * 2049])
async def test_a_value_is_bounded_in_bytes_and_never_repeated(api: Api, value: str) -> None:
    answer = await api.ask("editor", "POST", path_of(api), {"name": "db", "value": value})
    assert answer.status_code == 400
    error = (await answer.get_json())["error"]
    assert error.startswith("value")
    assert not value or value not in error
    assert await listed(api) == []


async def test_a_replaced_value_sets_rotated_at(api: Api) -> None:
    await api.new_secret(name="db")
    answer = await api.ask("editor", "PATCH", path_of(api, "db"), {"value": "other"})
    assert answer.status_code == 204
    assert (await listed(api))[0]["rotated_at"] is not None


async def test_a_patch_without_a_change_is_refused(api: Api) -> None:
    await api.new_secret(name="db")
    answer = await api.ask("editor", "PATCH", path_of(api, "db"), {})
    assert answer.status_code == 400


async def test_a_secret_in_use_stays(api: Api) -> None:
    await api.new_secret(name="db")
    await api.new_monitor(**redis("db"))
    assert (await listed(api))[0]["used_by"]["total"] == 1
    gone = await api.ask("editor", "DELETE", path_of(api, "db"))
    assert (gone.status_code, await gone.get_json()) == (409, {"error": "secret_in_use"})


async def test_an_unused_one_is_renamed_unless_that_name_is_taken_and_then_goes(api: Api) -> None:
    await api.new_secret(name="one")
    await api.new_secret(name="two")
    taken = await api.ask("editor", "PATCH", path_of(api, "one"), {"name": "two"})
    assert await taken.get_json() == {"error": "secret_exists"}
    renamed = await api.ask("editor", "PATCH", path_of(api, "one"), {"name": "three"})
    assert renamed.status_code == 204
    assert [s["name"] for s in await listed(api)] == ["three", "two"]
    assert (await api.ask("editor", "DELETE", path_of(api, "three"))).status_code == 204
    assert (await api.ask("editor", "DELETE", path_of(api, "three"))).status_code == 404


async def test_references_follow_a_renamed_secret(api: Api) -> None:
    for name in ("db", "kept"):
        await api.new_secret(name=name)
    cache = await api.new_monitor(**redis("db"))
    other = await api.new_monitor(**redis("kept"))
    steps = [{"url": "https://shop.example/", "headers": {"Authorization": "{{secret:login}}"}}]
    scenario = await api.new_monitor(
        type="synthetic",
        target="",
        config={"scenario": {"steps": steps}, "scenario_secret_login_ref": "db"},
    )
    document = {**polled(), "secrets": {"key": "db"}}
    canary = await api.new_monitor(
        type="async_canary",
        target="",
        interval_seconds=3_600,
        config={"workflow": document, "canary_secret_key_ref": "db"},
    )
    changed = await api.ask("editor", "PATCH", path_of(api, "db"), {"name": "cache-db"})
    assert changed.status_code == 204, await changed.get_data()

    async def seen(row: Any) -> Any:
        return await (await api.ask("editor", "GET", f"/api/v1/monitors/{row.uid}")).get_json()

    assert (await seen(cache))["config"]["password_ref"] == "cache-db"
    assert (await seen(other))["config"]["password_ref"] == "kept"
    assert (await seen(scenario))["config"]["scenario_secret_login_ref"] == "cache-db"
    config = (await seen(canary))["config"]
    assert config["canary_secret_key_ref"] == "cache-db"
    assert config["workflow"] == {**document, "secrets": {"key": "cache-db"}}
    # The written config is valid.
    path = f"/api/v1/monitors/{canary.uid}"
    assert (await api.ask("editor", "PATCH", path, {"config": config})).status_code == 200
    revisions = await api.rows("select id, revision from monitors order by id")
    assert [revision for _, revision in revisions] == [2, 1, 2, 2]
    audited = await api.rows("select action from audit_entries where target like '%%cache-db%%'")
    assert sorted(audited) == 3 * [("monitor.update",)] + [("secret.update",)]
    assert [(one["name"], one["used_by"]["total"]) for one in await listed(api)] == [
        ("cache-db", 3),
        ("kept", 1),
    ]


async def test_files_keep_the_name_of_a_secret(api: Api) -> None:
    await api.new_secret(name="db")
    row = await api.new_monitor(name="Cache", **redis("db"))
    await api.new_monitor(**redis("db"))
    async with api.pool.transaction("manage") as tx:
        await tx.execute(
            "update monitors set managed_by = 'files', bundle_uid = 'x' where id = %(id)s",
            id=row.id,
        )
    assert (await listed(api))[0]["used_by"] == {"total": 2, "file_managed": 1}
    renamed = await api.ask("editor", "PATCH", path_of(api, "db"), {"name": "other"})
    error = "managed_by_file: monitor Cache: managed by files"
    assert (renamed.status_code, await renamed.get_json()) == (409, {"error": error})
    async with api.pool.transaction("manage") as tx:
        await tx.execute("update monitors set orphaned_at = now() where managed_by <> ''")
    assert (await listed(api))[0]["used_by"] == {"total": 2, "file_managed": 0}
    renamed = await api.ask("editor", "PATCH", path_of(api, "db"), {"name": "other"})
    assert renamed.status_code == 204


async def test_a_refused_rename_keeps_the_old_value_too(api: Api) -> None:
    await api.new_secret(name="db")
    await api.new_secret(name="other")
    before = await api.rows("select value_ciphertext from project_secrets")
    body = {"name": "other", "value": "replaced"}
    assert (await api.ask("editor", "PATCH", path_of(api, "db"), body)).status_code == 409
    assert await api.rows("select value_ciphertext from project_secrets") == before


async def test_a_monitor_cannot_reference_a_secret_of_another_project(api: Api) -> None:
    await api.new_secret(name="db")
    for project, name, status in (
        ("acme/shop", "db", 201),
        ("acme/shop", "nowhere", 400),
        ("acme/mill", "db", 400),
    ):
        answer = await api.ask(
            "org_admin",
            "POST",
            f"/api/v1/projects/{api.projects[project][1]}/monitors",
            {"name": f"{project} {name}", **redis(name)},
        )
        assert answer.status_code == status, (project, name)
        if status == 400:
            error = (await answer.get_json())["error"]
            assert error == "config.password_ref: names no secret of this project"


async def test_an_edit_cannot_reference_an_unknown_secret(api: Api) -> None:
    row = await api.new_monitor(type="redis", target="127.0.0.1:1")
    answer = await api.ask(
        "editor", "PATCH", f"/api/v1/monitors/{row.uid}", {"config": {"password_ref": "nowhere"}}
    )
    assert answer.status_code == 400


async def test_a_trial_names_the_reference_that_leads_nowhere(api: Api) -> None:
    answer = await api.ask(
        "editor",
        "POST",
        f"/api/v1/projects/{api.project}/monitors/test",
        {"name": "m", **redis("nowhere")},
    )
    assert answer.status_code == 400
    assert "config.password_ref" in (await answer.get_json())["error"]


async def test_a_project_has_a_limit_of_secrets(api: Api, monkeypatch: Any) -> None:
    async def full(*_: Any) -> int:
        return SECRETS_OF_PROJECT_MOST

    monkeypatch.setattr(table, "count_secrets", full)
    answer = await api.ask("editor", "POST", path_of(api), {"name": "db", "value": VALUE})
    assert (answer.status_code, await answer.get_json()) == (409, {"error": "secret_quota"})


async def test_the_audit_log_contains_names_and_no_values(api: Api) -> None:
    await api.ask("editor", "POST", path_of(api), {"name": "db", "value": VALUE})
    await api.ask("editor", "PATCH", path_of(api, "db"), {"name": "db2", "value": VALUE + "!"})
    await api.ask("editor", "DELETE", path_of(api, "db2"))
    rows = await api.rows("select action, target from audit_entries order by id")
    assert [action for action, _ in rows] == ["secret.create", "secret.update", "secret.delete"]
    assert VALUE not in str(rows)
    assert "name=db->db2" in rows[1][1]


def redis(secret: str) -> dict[str, Any]:
    return {"type": "redis", "target": "127.0.0.1:1", "config": {"password_ref": secret}}


@given(st.text(max_size=70))
def test_only_what_the_grammar_makes_is_a_name(text: str) -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    is_one = (
        1 <= len(text) <= 63
        and text[0] in letters
        and all(c in letters + "0123456789-" for c in text)
    )
    assert (secret_name_fault(text) is None) == is_one


@given(st.text(max_size=5000))
def test_a_value_is_what_utf8_carries_within_the_bound(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        size = 0
    assert (secret_value_fault(text) is None) == (1 <= size <= 4096)


def test_only_settings_that_refer_are_references() -> None:
    config = {"password_ref": "db", "token_ref": "", "ref": "x", "client_ref": 3, "_reference": "y"}
    assert references(config) == {"password_ref": "db"}


# Client certificates: the key is write-only, and must be that of the certificate.

CHAIN, KEY = pems(trustme.CA().issue_cert("leadline.example"))
OTHER_CHAIN, OTHER_KEY = pems(trustme.CA().issue_cert("leadline.example"))


def body(**config: Any) -> dict[str, Any]:
    return {
        "name": "shop",
        "type": "http",
        "target": "https://shop.example/",
        "interval_seconds": 60,
        "config": config,
    }


async def made(api: Api, **config: Any) -> tuple[int, Any]:
    path = f"/api/v1/projects/{api.project}/monitors"
    answer = await api.ask("editor", "POST", path, body(**config))
    return answer.status_code, await answer.get_json()


async def edited(api: Api, monitor: str, **given: Any) -> tuple[int, Any]:
    answer = await api.ask("editor", "PATCH", f"/api/v1/monitors/{monitor}", given)
    return answer.status_code, await answer.get_json()


async def test_a_key_is_stored_encrypted_and_never_returned(api: Api) -> None:
    status, monitor = await made(api, client_cert=CHAIN, client_key=KEY)
    assert status == 201, monitor
    assert monitor["config"]["client_cert"] == CHAIN
    assert monitor["config"]["client_key"] == ""
    line = KEY.splitlines()[1]
    for row in await api.rows("select config::text, config_ciphertext from monitors"):
        assert line not in row[0]
        assert line.encode() not in row[1]
    # A blank keeps the key, which must still be that of the certificate.
    config = {"client_cert": OTHER_CHAIN, "client_key": ""}
    status, refused = await edited(api, monitor["id"], config=config)
    assert status == 400
    assert refused["error"].startswith("config.client_key: is not the key of client_cert")
    config = {"client_cert": OTHER_CHAIN, "client_key": OTHER_KEY}
    assert (await edited(api, monitor["id"], config=config))[0] == 200
    # The key is not sent to another host.
    config = {"client_cert": OTHER_CHAIN, "client_key": ""}
    moved = {"target": "https://other.example/", "config": config}
    status, refused = await edited(api, monitor["id"], **moved)
    assert (status, refused["error"].split(":")[0]) == (400, "config.client_key")


async def test_a_key_in_a_project_secret_must_belong_to_the_certificate(api: Api) -> None:
    await api.new_secret(name="key", value=KEY)
    await api.new_secret(name="word", value="horse")
    assert (await made(api, client_cert=CHAIN, client_key_ref="key"))[0] == 201
    for name, chain in (("key", OTHER_CHAIN), ("word", CHAIN)):
        status, refused = await made(api, client_cert=chain, client_key_ref=name)
        assert status == 400
        assert refused["error"].startswith("config.client_key_ref: is not")
        assert "horse" not in refused["error"]
    # A secret that was replaced later prevents no other edit.
    status, monitor = await made(api, client_cert=CHAIN, client_key_ref="key")
    path = f"/api/v1/projects/{api.project}/secrets/key"
    await api.ask("editor", "PATCH", path, {"value": OTHER_KEY})
    assert (await edited(api, monitor["id"], name="shop 2"))[0] == 200
    config = {"client_cert": OTHER_CHAIN, "client_key_ref": "key"}
    assert (await edited(api, monitor["id"], config=config))[0] == 200


async def test_credentials_are_not_sent_to_another_address(api: Api) -> None:
    oauth2 = {
        "auth_mode": "oauth2",
        "oauth2_token_url": "https://id.example/token",
        "oauth2_client_id": "shop",
        "oauth2_client_secret": "horse-battery",
    }
    proxy = {
        "proxy_url": "http://proxy.example:3128",
        "proxy_username": "shop",
        "proxy_password": "staple-correct",
    }
    status, monitor = await made(api, **oauth2, **proxy)
    assert status == 201, monitor
    assert monitor["config"]["oauth2_client_secret"] == ""
    assert monitor["config"]["proxy_password"] == ""
    assert "horse-battery" not in str(await api.rows("select * from monitors"))
    blank = {**oauth2, **proxy, "oauth2_client_secret": "", "proxy_password": ""}
    changes = {
        "oauth2_token_url": "https://evil.example/token",
        "proxy_url": "http://evil.example:3128",
    }
    for setting, url in changes.items():
        status, refused = await edited(api, monitor["id"], config={**blank, setting: url})
        assert status == 400
        assert "must be given again" in refused["error"]
    same = {**blank, "oauth2_token_url": "https://id.example/token?realm=a"}
    assert (await edited(api, monitor["id"], config=same))[0] == 200
