"""Agent tokens: displayed once, bound to a configured region, and without rights after
revocation."""

from typing import Any
from uuid import UUID

import pytest
import trio

from leadline.storage.agents.queries.agent_tokens import select_live_agent_token
from leadline.storage.agents.rows import AgentTokenRow
from leadline.storage.agents.tables.agent_tokens import REVOKED_SHOWN
from leadline.storage.agents.transactions import edit_agent_tokens
from leadline.storage.core.token import TokenKind, digest, kind_of
from tests.support.app.cast import Api
from tests.support.worlds.blocked import until_blocked

HANGS_SECONDS = 30
PATH = "/api/v1/agent-tokens"


async def make(api: Api, name: str = "attic", region: str = "eu") -> Any:
    answer = await api.ask("global_admin", "POST", PATH, {"name": name, "region": region})
    return answer.status_code, await answer.get_json()


async def found(api: Api, token: str) -> AgentTokenRow | None:
    async with api.pool.transaction("find", read_only=True) as tx:
        return await select_live_agent_token(tx, digest(token))


async def listed(api: Api) -> Any:
    return await (await api.ask("global_admin", "GET", PATH)).get_json()


async def test_a_token_is_shown_once_and_kept_as_its_digest(api: Api) -> None:
    status, made = await make(api)
    assert (status, set(made)) == (201, {"id", "name", "region", "token"})
    token = made["token"]
    assert kind_of(token) is TokenKind.AGENT
    row = await found(api, token)
    assert row is not None
    assert (str(row.uid), row.name, row.region) == (made["id"], "attic", "eu")
    [told] = await listed(api)
    assert set(told) == {"id", "name", "region", "created_at"}
    stored = await api.rows(
        "select t::text from agent_tokens t union select t::text from audit_entries t"
    )
    assert token not in str(stored)
    assert await found(api, token[:-1] + ("a" if token[-1] != "a" else "b")) is None


async def test_a_revoked_token_is_refused_and_stays_in_the_list(api: Api) -> None:
    _, kept = await make(api, "kept")
    _, made = await make(api, "gone")
    path = f"{PATH}/{made['id']}"
    assert (await api.ask("global_admin", "DELETE", path)).status_code == 204
    assert await found(api, made["token"]) is None
    assert await found(api, kept["token"]) is not None
    told = await listed(api)
    assert [(one["name"], "revoked_at" in one) for one in told] == [
        ("kept", False),
        ("gone", True),
    ]
    again = await api.ask("global_admin", "DELETE", path)
    assert (again.status_code, await again.get_json()) == (404, {"error": "not_found"})


async def test_creation_and_revocation_are_in_the_audit_of_the_installation(api: Api) -> None:
    _, made = await make(api)
    await api.ask("global_admin", "DELETE", f"{PATH}/{made['id']}")
    rows = await api.rows("select org, action, target, via_token from audit_entries order by id")
    target = f"agent_token:{made['id']} region=eu"
    assert rows == [
        (0, "agent_token.create", target, False),
        (0, "agent_token.revoke", target, False),
    ]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"name": "a", "region": "moon"}, "region: is not a region of this installation"),
        ({"name": " ", "region": "eu"}, "name: must not be blank"),
        ({"name": "a"}, "region: is required"),
        ({"name": "a", "region": "eu", "token": "x" * 40}, "invalid JSON body"),
    ],
)
async def test_a_token_needs_a_configured_region(
    api: Api, body: dict[str, str], error: str
) -> None:
    answer = await api.ask("global_admin", "POST", PATH, body)
    assert (answer.status_code, await answer.get_json()) == (400, {"error": error})
    assert await listed(api) == []


async def test_concurrent_creations_stay_within_the_limit(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_agent_tokens, "LIVE_MOST", 1)
    statuses: list[int] = []

    async def create(name: str) -> None:
        statuses.append((await make(api, name))[0])

    with trio.fail_after(HANGS_SECONDS):
        async with trio.open_nursery() as nursery:
            async with api.pool.transaction("hold") as tx:
                await tx.execute("lock table agent_tokens in exclusive mode")
                for name in ("first", "second"):
                    nursery.start_soon(create, name)
                await until_blocked(api.pool, 2)
    assert sorted(statuses) == [201, 409]


async def test_the_list_has_its_bounds(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_agent_tokens, "LIVE_MOST", 2)
    for name in ("first", "second"):
        assert (await make(api, name))[0] == 201
    assert await make(api, "third") == (409, {"error": "agent_token_quota"})
    assert [one["name"] for one in await listed(api)] == ["second", "first"]
    await api.ask("global_admin", "DELETE", f"{PATH}/{(await listed(api))[0]['id']}")
    assert (await make(api, "third"))[0] == 201
    async with api.pool.transaction("many") as tx:
        await tx.execute(
            "insert into agent_tokens (uid, name, region, token_hash, created_at, revoked_at)"
            " select gen_random_uuid(), 'old', 'eu', int4send(n::int), at(%(now)s), at(%(now)s)"
            " from generate_series(1, %(n)s) n",
            n=REVOKED_SHOWN,
            now=tx.now - 1,
        )
    told = await listed(api)
    # The latest revoked tokens are listed, and they displace no valid token.
    assert [one["name"] for one in told][:3] == ["third", "first", "old"]
    assert len(told) == 2 + REVOKED_SHOWN
    assert sum(one["name"] == "second" for one in told) == 1


async def test_an_agent_token_gives_no_access_to_other_routes(api: Api) -> None:
    _, made = await make(api)
    bearer = {"Authorization": f"Bearer {made['token']}"}
    for path in ("/api/v1/me", PATH, "/api/v1/regions"):
        assert (await api.ask(bearer, "GET", path)).status_code == 401
    assert UUID(made["id"])
