"""The screen of the secrets of a project shows no value, and only editors can write."""

from typing import Any

import pytest

from leadline.storage.monitors.transactions.edit_secrets import place_of
from tests.support.app.cast import Api

VALUE = "canary-9d1e"


async def send(api: Api, who: str, **form: str) -> Any:
    body = "&".join(f"{name}={value}" for name, value in form.items()).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    path = f"/projects/{api.project}/secrets"
    return await api.ask(who, "POST", path, data=body, headers=headers)


async def seen(api: Api, who: str = "viewer") -> str:
    answer = await api.ask(who, "GET", f"/projects/{api.project}/secrets")
    assert answer.status_code == 200
    return await text_of(answer)


async def text_of(answer: Any) -> str:
    data = await answer.get_data()
    return str(data, "utf-8")


async def test_an_editor_adds_replaces_and_deletes_one(api: Api) -> None:
    assert "No secrets yet" in await seen(api)
    assert (await send(api, "editor", act="add", name="db", value=VALUE)).status_code == 303
    page = await seen(api)
    assert "1 secret, 1 that nothing refers to" in page
    assert "never" in page
    assert (await send(api, "editor", act="replace", name="db", value="other")).status_code == 303
    assert "never" not in (await seen(api)).partition("<tbody>")[2]
    assert (await send(api, "editor", act="delete", name="db")).status_code == 303
    assert "No secrets yet" in await seen(api)


async def test_no_page_shows_a_value_and_a_refused_form_does_not_either(api: Api) -> None:
    await send(api, "editor", act="add", name="db", value=VALUE)
    again = await send(api, "editor", act="add", name="db", value=VALUE)
    assert again.status_code == 400
    text = await text_of(again)
    assert "This name is in use" in text
    assert VALUE not in text
    wrong = await send(api, "editor", act="add", name="Not+A+Name", value=VALUE)
    text = await text_of(wrong)
    assert 'value="Not A Name"' in text
    assert "must match" in text
    assert VALUE not in text
    assert VALUE not in await seen(api, "editor")


@pytest.mark.parametrize("act", ["add", "replace"])
async def test_a_key_of_several_lines_is_kept_as_it_was_typed(api: Api, act: str) -> None:
    if act == "replace":
        await send(api, "editor", act="add", name="key", value="old")
    await send(api, "editor", act=act, name="key", value="%20one%0D%0Atwo%0D%0A")
    [(uid, sealed)] = await api.rows("select uid, value_ciphertext from project_secrets")
    assert api.context.keyring.open(sealed, place_of(uid)) == b" one\ntwo\n"


async def test_a_used_secret_shows_its_uses_and_has_no_delete_button(api: Api) -> None:
    await api.new_secret(VALUE, "db")
    row = await api.new_monitor(type="redis", target="h:1", config={"password_ref": "db"})
    page = await seen(api, "editor")
    assert "1 monitor" in page
    assert "Delete db" not in page
    answer = await send(api, "editor", act="delete", name="db")
    assert "Change them first" in await text_of(answer)
    form = await api.ask("editor", "GET", f"/monitors/{row.uid}/edit")
    assert '<option value="db" selected>' in await text_of(form)


@pytest.mark.parametrize("act", ["add", "replace", "delete"])
async def test_a_viewer_sees_no_form_and_is_refused(api: Api, act: str) -> None:
    await api.new_secret(VALUE, "db")
    assert "<textarea" not in await seen(api)
    assert (await send(api, "viewer", act=act, name="db", value="x")).status_code == 403


async def test_an_editor_makes_allows_replaces_and_deletes_the_push_key(api: Api) -> None:
    assert "Create push key" in await seen(api, "editor")
    assert (await send(api, "editor", act="push_key")).status_code == 303
    page = await seen(api, "editor")
    assert "/ping/leadline_push_" in page
    assert "A push to an unknown slug is refused." in page
    assert "leadline_push_" not in await seen(api)
    assert (await send(api, "editor", act="allow")).status_code == 303
    allowed = await seen(api, "editor")
    assert "The first push to an unknown slug creates" in allowed
    assert (await send(api, "editor", act="push_key", creates="true")).status_code == 303
    replaced = await seen(api, "editor")
    assert "The first push to an unknown slug creates" in replaced
    assert replaced.partition("/ping/")[2][:57] != allowed.partition("/ping/")[2][:57]
    assert (await send(api, "editor", act="forbid")).status_code == 303
    assert "A push to an unknown slug is refused." in await seen(api, "editor")
    assert (await send(api, "editor", act="delete_push_key")).status_code == 303
    assert "Create push key" in await seen(api, "editor")
    assert (await send(api, "viewer", act="push_key")).status_code == 403
