"""The mail server settings of global admins: returned fields, kept password and validation."""

from typing import Any

from leadline.http.auth.passwords import Passwords
from leadline.storage.engine.keyring import Keyring
from leadline.storage.engine.pools import Pool
from leadline.storage.notifications.queries.mail_settings import (
    mailing_in_force,
    select_mail_settings,
)
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api
from tests.support.app.serving import call

PATH = "/settings/mail"
AT_FIRST: dict[str, Any] = {
    "enabled": False,
    "smtp_host": "",
    "smtp_port": 587,
    "smtp_username": "",
    "smtp_password_set": False,
    "from": "",
    "public_base_url": "",
    "deliverable": False,
}
WHOLE: dict[str, Any] = {
    "enabled": True,
    "smtp_host": "mail.example.com",
    "smtp_port": 465,
    "smtp_username": "leadline",
    "smtp_password": "very secret",
    "from": "Leadline <up@example.com>",
    "public_base_url": "https://up.example.com",
}


async def put(api: Api, status: int = 200, **body: Any) -> Any:
    return await call(api, "PUT", PATH, body, status, who="global_admin")


async def stored_password(api: Api) -> str:
    async with api.pool.transaction("look") as tx:
        found = await select_mail_settings(tx, api.context.keyring)
    assert found is not None
    return found.smtp_password


async def test_the_settings_are_returned_without_the_password(api: Api) -> None:
    found = await call(api, "GET", PATH, who="global_admin")
    assert found == {"configured": False, **AT_FIRST}
    set_ = await put(api, **WHOLE)
    shown = {k: v for k, v in WHOLE.items() if k != "smtp_password"}
    assert set_ == {"configured": True, **shown, "smtp_password_set": True, "deliverable": False}
    assert await call(api, "GET", PATH, who="global_admin") == set_
    assert await stored_password(api) == "very secret"
    (dump,) = await api.rows("select s::text from settings s")
    assert "very secret" not in dump[0]
    (entry,) = await api.rows("select target from audit_entries where action = 'settings.mail'")
    assert entry[0] == "settings:mail enabled=True host=mail.example.com"


async def test_a_blank_password_is_kept_unless_the_server_changes(api: Api) -> None:
    await put(api, **WHOLE)
    again = {**WHOLE, "smtp_password": "", "from": "other@example.com"}
    await put(api, **again)
    assert await stored_password(api) == "very secret"
    for moved in ({"smtp_host": "evil.example.com"}, {"smtp_port": 25}, {"smtp_username": "x"}):
        refused = await put(api, 400, **{**again, **moved})
        fault = "smtp_password: must be given again, as server or account changed"
        assert refused == {"error": fault}
    assert await stored_password(api) == "very secret"
    await put(api, **{**again, "smtp_username": ""})
    assert await stored_password(api) == ""


async def test_equal_settings_are_not_audited(api: Api) -> None:
    first = await put(api, **WHOLE)
    sealed = await api.rows("select secret_ciphertext from settings")
    for equal in (WHOLE, {**WHOLE, "smtp_password": ""}):
        assert await put(api, **equal) == first
    assert await api.rows("select secret_ciphertext from settings") == sealed
    assert len(await api.rows("select from audit_entries")) == 1
    changes: list[dict[str, Any]] = [{"smtp_password": "another"}, {"smtp_port": 25}]
    for count, other in enumerate(changes, 2):
        await put(api, **{**WHOLE, "smtp_password": "another", **other})
        assert len(await api.rows("select from audit_entries")) == count
    assert await stored_password(api) == "another"


async def test_an_invalid_setting_is_named(api: Api) -> None:
    wrong = await put(api, 400, **{**WHOLE, "from": "nobody"})
    assert wrong == {"error": "from: must contain an e-mail address"}
    wrong = await put(api, 400, **{**WHOLE, "smtp_port": 70_000})
    assert wrong == {"error": "smtp_port: must be 1 to 65535"}
    wrong = await put(api, 400, enabled=True)
    assert wrong == {"error": "smtp_host: is required when mail is enabled"}


async def test_without_a_key_no_password_can_be_kept(pool: Pool, passwords: Passwords) -> None:
    async with open_api(pool, FROZEN_NOW, passwords, keyring=Keyring(None)) as api:
        assert await put(api, 400, **WHOLE) == {"error": "encryption_key_missing"}
        await put(api, **{**WHOLE, "smtp_username": "", "smtp_password": ""})


async def test_a_password_that_no_key_opens_is_asked_for_again(api: Api) -> None:
    await put(api, **WHOLE)
    async with api.pool.transaction("look", read_only=True) as tx:
        lost = await mailing_in_force(tx, Keyring(b"x" * 32), api.context.means, "https://a.test")
    assert not lost.can_mail
