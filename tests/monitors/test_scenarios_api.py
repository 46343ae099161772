"""Scenarios in the API: stored encrypted, returned to editors and hidden from viewers."""

import json
from typing import Any

import pytest

from leadline.storage.engine.keyring import Keyring
from tests.support.app.cast import Api

CANARY = "canary-5f2c"


def scenario(**given: Any) -> dict[str, Any]:
    return {"steps": [{"url": f"https://api.example.com/{CANARY}", **given}]}


async def create(api: Api, config: dict[str, Any], who: str = "editor") -> Any:
    number = next(api.numbers)
    return await api.ask(
        who,
        "POST",
        f"/api/v1/projects/{api.project}/monitors",
        {"name": f"s{number}", "type": "synthetic", "config": config},
    )


async def shown(api: Api, who: str, monitor: str) -> Any:
    return await (await api.ask(who, "GET", f"/api/v1/monitors/{monitor}")).get_json()


@pytest.mark.parametrize("spell", [lambda document: document, json.dumps], ids=["object", "text"])
async def test_an_editor_reads_the_scenario_as_an_object_and_a_viewer_does_not(
    api: Api, spell: Any
) -> None:
    made = await create(api, {"scenario": spell(scenario())})
    assert made.status_code == 201, await made.get_data()
    monitor = (await made.get_json())["id"]
    assert (await shown(api, "editor", monitor))["config"] == {"scenario": scenario()}
    for who in ("viewer", "viewer_token"):
        assert (await shown(api, who, monitor))["config"] == {}
    listed = await api.ask("viewer", "GET", f"/api/v1/projects/{api.project}/monitors")
    assert CANARY.encode() not in await listed.get_data()
    page = await api.ask("viewer", "GET", f"/monitors/{monitor}")
    assert page.status_code == 200
    assert CANARY.encode() not in await page.get_data()


async def test_it_is_stored_encrypted_and_nowhere_else(api: Api) -> None:
    await create(api, {"scenario": scenario()})
    everything = str(await api.rows("select m::text from monitors m"))
    everything += str(await api.rows("select a::text from audit_entries a"))
    assert CANARY not in everything


async def test_without_a_key_it_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api.context.keyring, "_current", None)
    assert not api.context.keyring.can_seal
    answer = await create(api, {"scenario": scenario()})
    assert (answer.status_code, await answer.get_json()) == (
        400,
        {"error": "encryption_key_missing"},
    )


async def test_another_edit_keeps_it_and_a_new_one_replaces_it(api: Api) -> None:
    monitor = (await (await create(api, {"scenario": scenario()})).get_json())["id"]
    path = f"/api/v1/monitors/{monitor}"
    for body in ({"name": "renamed"}, {"config": {"scenario": ""}}):
        answer = await api.ask("editor", "PATCH", path, body)
        assert (await answer.get_json())["config"] == {"scenario": scenario()}, body
    other = {"steps": [{"url": "https://other.example.com/"}]}
    answer = await api.ask("editor", "PATCH", path, {"config": {"scenario": other}})
    assert (await answer.get_json())["config"] == {"scenario": other}


async def test_a_literal_credential_is_refused_by_step_and_header_and_not_repeated(
    api: Api,
) -> None:
    document = scenario()
    document["steps"].append(
        {"url": "https://x.example/", "headers": {"Authorization": f"Bearer {CANARY}"}}
    )
    answer = await create(api, {"scenario": document})
    assert answer.status_code == 400
    error = (await answer.get_json())["error"]
    assert error.startswith("config.scenario: step 2 header authorization ")
    assert CANARY not in error


async def test_a_binding_names_a_secret_of_the_project(api: Api) -> None:
    document = scenario(headers={"Authorization": "{{secret:login}}"})
    unbound = await create(api, {"scenario": document})
    assert (await unbound.get_json())["error"].startswith("config.scenario_secret_login_ref: ")
    nowhere = await create(api, {"scenario": document, "scenario_secret_login_ref": "nowhere"})
    assert (await nowhere.get_json())["error"] == (
        "config.scenario_secret_login_ref: names no secret of this project"
    )
    await api.new_secret(CANARY, "shop-login")
    config = {"scenario": document, "scenario_secret_login_ref": "shop-login"}
    made = await create(api, config)
    assert made.status_code == 201
    monitor = (await made.get_json())["id"]
    assert (await shown(api, "editor", monitor))["config"] == config
    used = await (
        await api.ask("viewer", "GET", f"/api/v1/projects/{api.project}/secrets")
    ).get_json()
    assert used[0]["used_by"]["total"] == 1


async def test_a_scenario_with_a_binding_is_not_tested_before_it_is_saved(api: Api) -> None:
    await api.new_secret(CANARY, "shop-login")
    document = scenario(headers={"Authorization": "{{secret:login}}"})
    answer = await api.ask(
        "editor",
        "POST",
        f"/api/v1/projects/{api.project}/monitors/test",
        {
            "name": "s",
            "type": "synthetic",
            "config": {"scenario": document, "scenario_secret_login_ref": "shop-login"},
        },
    )
    assert answer.status_code == 400
    assert "binding login" in (await answer.get_json())["error"]


async def test_one_without_is_tested_and_answers_by_step(api: Api) -> None:
    document = {"steps": [{"url": "http://127.0.0.1:1/"}]}
    answer = await api.ask(
        "editor",
        "POST",
        f"/api/v1/projects/{api.project}/monitors/test",
        {"name": "s", "type": "synthetic", "config": {"scenario": document}},
    )
    assert answer.status_code == 200, await answer.get_data()
    said = await answer.get_json()
    assert said["up"] is False
    assert said["msg"] == "connect_refused step 1 127.0.0.1"


async def test_a_scenario_that_cannot_be_decrypted_is_blank(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = (await (await create(api, {"scenario": scenario()})).get_json())["id"]
    monkeypatch.setattr(api.context.keyring, "_ciphers", Keyring(b"x" * 32)._ciphers)
    assert (await shown(api, "editor", monitor))["config"] == {"scenario": ""}
