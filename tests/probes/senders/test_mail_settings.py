"""The settings of the mail server: validation, and the password, which is never sent to another
server.
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.senders.mail_settings import (
    MailSettings,
    base_url_fault,
    mail_faults,
    with_password,
)

USUAL = MailSettings(
    enabled=True,
    smtp_host="mail.example.com",
    from_="Leadline <up@example.com>",
    public_base_url="https://up.example.com",
)


@pytest.mark.parametrize(
    ("given_", "fields"),
    [
        ({}, []),
        ({"smtp_host": ""}, ["smtp_host"]),
        ({"smtp_host": "", "enabled": False}, []),
        ({"smtp_host": "a b"}, ["smtp_host"]),
        ({"smtp_host": "a/b"}, ["smtp_host"]),
        ({"smtp_host": "user@host"}, ["smtp_host"]),
        ({"smtp_host": "x" * 254}, ["smtp_host"]),
        ({"smtp_host": "[::1]"}, []),
        ({"smtp_port": 0}, ["smtp_port"]),
        ({"smtp_port": 65_536}, ["smtp_port"]),
        ({"from_": ""}, ["from"]),
        ({"from_": "nobody"}, ["from"]),
        ({"from_": "a@b.test\r\nBcc: c@d.test"}, ["from"]),
        ({"from_": "a@b.test"}, []),
        ({"smtp_username": "u"}, ["smtp_password"]),
        ({"smtp_password": "p"}, ["smtp_username"]),
        ({"smtp_username": "u", "smtp_password": "p\n"}, ["smtp_password"]),
        ({"public_base_url": ""}, []),
        ({"public_base_url": "up.example.com"}, ["public_base_url"]),
        ({"public_base_url": "https://up.example.com/?a"}, ["public_base_url"]),
        ({"smtp_host": "", "from_": ""}, ["smtp_host", "from"]),
    ],
)
def test_each_invalid_field_is_named(given_: dict[str, Any], fields: list[str]) -> None:
    found = mail_faults(msgspec.structs.replace(USUAL, **given_))
    assert [field for field, _ in found] == fields


@pytest.mark.parametrize(
    "text",
    [
        "ftp://x.test",
        "https://",
        "https://u@x.test",
        "https://x.test:a",
        "https://x.test/ a",
        "//x",
    ],
)
def test_the_base_url_must_be_a_web_url(text: str) -> None:
    assert base_url_fault(text) is not None


servers = st.builds(
    MailSettings,
    smtp_host=st.sampled_from(["a.test", "b.test"]),
    smtp_port=st.sampled_from([25, 587]),
    smtp_username=st.sampled_from(["", "u", "v"]),
)


@given(given_=servers, before=servers, password=st.sampled_from([None, "", "new"]))
def test_a_stored_password_is_used_only_for_its_server(
    given_: MailSettings, before: MailSettings, password: str | None
) -> None:
    if before.smtp_username:
        before = msgspec.structs.replace(before, smtp_password="old")
    found = with_password(given_, password, before)
    same = (given_.smtp_host, given_.smtp_port, given_.smtp_username) == (
        before.smtp_host,
        before.smtp_port,
        before.smtp_username,
    )
    if found is None:
        assert given_.smtp_username
        assert not password
        assert not same
    elif found.smtp_password == "old":
        assert same
        assert not password
    else:
        assert found.smtp_password == (password or "")


def test_the_repr_of_settings_has_no_password() -> None:
    whole = msgspec.structs.replace(USUAL, smtp_username="u", smtp_password="hidden")
    assert "hidden" not in repr(whole)
