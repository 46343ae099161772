"""The metadata of an OpenID provider is validated; every fault has a reason code."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from leadline.probes.net.egress import Egress, make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.oidc import oidc_client as openid
from leadline.probes.oidc.oidc_client import (
    Client,
    Metadata,
    ProviderFault,
    Tokens,
    ask_about,
    authorization_address,
    discover,
    fetch_keys,
    redeem,
    sign_out_address,
)
from tests.support.peers.servers import answer, read_head, serving


@pytest.fixture
async def reach() -> AsyncIterator[Egress]:
    made = make_reach(probe_policy(), nameservers=())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.lag.watch)
        yield made
        nursery.cancel_scope.cancel()


class ScriptedServer:
    """A server with one fixed reply, which records the requests."""

    def __init__(self, body: bytes, status: str = "200 OK") -> None:
        self.body, self.status = body, status
        self.heard: list[str] = []

    async def __call__(self, stream: trio.SocketStream) -> None:
        head = await read_head(stream)
        first, _, rest = head.partition(b"\r\n\r\n")
        self.heard.append(first.decode() + "\n\n" + rest.decode())
        await stream.send_all(answer(self.body, self.status))


def document(port: int, **changed: Any) -> bytes:
    issuer = f"http://127.0.0.1:{port}"
    whole = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/auth",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/keys",
        **changed,
    }
    return json.dumps({k: v for k, v in whole.items() if v is not None}).encode()


async def found(reach: Egress, **changed: Any) -> Metadata | str:
    """Returns the metadata, or the reason code of its refusal."""
    says = ScriptedServer(b"")
    async with serving(says) as port:
        says.body = document(port, **changed)
        try:
            return await discover(reach, f"http://127.0.0.1:{port}")
        except ProviderFault as fault:
            return fault.reason


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"issuer": "https://elsewhere.test"}, "issuer_differs"),
        ({"issuer": None}, "issuer_differs"),
        ({"token_endpoint": None}, "no_token_endpoint"),
        ({"jwks_uri": 7}, "no_jwks_uri"),
        ({"token_endpoint": "http://elsewhere.test/token"}, "not_https"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "bad_endpoint"),
        ({"end_session_endpoint": "http://elsewhere.test"}, "not_https"),
    ],
)
async def test_invalid_metadata_is_refused_with_a_reason(
    reach: Egress, changed: dict[str, Any], reason: str
) -> None:
    assert await found(reach, **changed) == reason


async def test_metadata_is_read(reach: Egress) -> None:
    metadata = await found(reach, token_endpoint_auth_methods_supported=["client_secret_post", 7])
    assert isinstance(metadata, Metadata)
    assert metadata.token_methods == ("client_secret_post",)
    assert metadata.end_session_endpoint == ""
    usual = await found(reach)
    assert isinstance(usual, Metadata)
    assert usual.token_methods == ("client_secret_basic",)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{}", "500 No", "http_status 500"),
        (b"{}", "302 Found", "http_status 302"),
        (b"[]", "200 OK", "bad_document"),
        (b"<html>", "200 OK", "bad_document"),
        (b"\xff", "200 OK", "bad_document"),
        (b'{"a":' * 50_000, "200 OK", "bad_document"),
        (b'{"a":"' + b"x" * 300_000 + b'"}', "200 OK", "bad_document"),
    ],
)
async def test_an_invalid_response_has_a_reason(
    reach: Egress, body: bytes, status: str, reason: str
) -> None:
    async with serving(ScriptedServer(body, status)) as port:
        with pytest.raises(ProviderFault) as caught:
            await discover(reach, f"http://127.0.0.1:{port}")
    assert caught.value.reason == reason


async def test_an_unreachable_or_silent_provider_has_a_reason(
    reach: Egress, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ProviderFault, match="connect_refused"):
        await discover(reach, "http://127.0.0.1:1")
    monkeypatch.setattr(openid, "ASK_SECONDS", 0.2)

    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with serving(silent) as port:
        with pytest.raises(ProviderFault, match="timeout"):
            await discover(reach, f"http://127.0.0.1:{port}")


def metadata_at(port: int, **given: Any) -> Metadata:
    base = f"http://127.0.0.1:{port}"
    values: dict[str, Any] = {
        "issuer": base,
        "authorization_endpoint": f"{base}/auth",
        "token_endpoint": f"{base}/token",
        "jwks_uri": f"{base}/keys",
        **given,
    }
    return Metadata(**values)


@pytest.mark.parametrize("keys", [b'{"keys": 7}', b'{"keys": [7]}', b"{}"])
async def test_malformed_keys_are_refused(reach: Egress, keys: bytes) -> None:
    async with serving(ScriptedServer(keys)) as port:
        with pytest.raises(ProviderFault, match="bad_keys"):
            await fetch_keys(reach, metadata_at(port))


CLIENT = Client(id="a client", secret="s:%+", redirect_url="https://up.test/auth/callback")


async def test_the_client_authenticates_with_a_supported_method(reach: Egress) -> None:
    says = ScriptedServer(b'{"id_token": "a.b.c", "access_token": "t"}')
    async with serving(says) as port:
        basic = await redeem(reach, metadata_at(port), CLIENT, "c", "v")
        posted = metadata_at(port, token_methods=("client_secret_post",))
        await redeem(reach, posted, CLIENT, "c", "v")
        bare = Client(id="x", secret="", redirect_url="https://up.test/")
        await redeem(reach, metadata_at(port), bare, "c", "v")
    assert basic == Tokens("a.b.c", "t")
    first, second, third = says.heard
    assert "Basic YSUyMGNsaWVudDpzJTNBJTI1JTJC" in first
    assert "client_secret" not in first
    assert "client_id=a+client&client_secret=s%3A%25%2B" in second
    assert "uthorization: Basic" not in second
    assert "client_id=x" in third
    assert "secret" not in third
    assert all("code_verifier=v" in heard for heard in says.heard)


async def test_a_response_without_an_id_token_is_refused(reach: Egress) -> None:
    async with serving(ScriptedServer(b'{"access_token": "t"}')) as port:
        with pytest.raises(ProviderFault, match="no_id_token"):
            await redeem(reach, metadata_at(port), CLIENT, "c", "v")


async def test_userinfo_needs_an_endpoint_and_a_usable_token(reach: Egress) -> None:
    nowhere = metadata_at(1)
    assert await ask_about(reach, nowhere, Tokens("a", "t")) == {}
    told = metadata_at(1, userinfo_endpoint="http://127.0.0.1:1/")
    for access in ("", "a\r\nX: y", "é"):
        assert await ask_about(reach, told, Tokens("a", access)) == {}


def test_urls_keep_the_query_of_the_provider() -> None:
    metadata = metadata_at(
        1, authorization_endpoint="https://id.test/a?x=1", end_session_endpoint="https://id.test/e"
    )
    address = authorization_address(
        metadata, CLIENT, scopes=("openid", "email"), state="s", nonce="n", challenge="c"
    )
    assert address.startswith("https://id.test/a?x=1&response_type=code&client_id=a+client&")
    assert (
        "scope=openid+email&state=s&nonce=n&code_challenge=c&code_challenge_method=S256" in address
    )
    assert sign_out_address(metadata, "c", "") == "https://id.test/e?client_id=c"
    assert "post_logout_redirect_uri=https%3A%2F%2Fup.test" in sign_out_address(
        metadata, "c", "https://up.test"
    )
    assert sign_out_address(metadata_at(1), "c", "") == ""
