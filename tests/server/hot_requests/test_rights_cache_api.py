"""Cached rights: a withdrawn right is refused in time, also if its notification is lost."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from leadline.http.auth.passwords import Passwords
from leadline.http.auth.rights_cache import LARGEST_AGE_SECONDS, VALUES_MOST, RightsCache
from leadline.storage.engine.pools import Pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api


@dataclass
class Rights:
    """Rights as the database has them, with the instant of each withdrawal."""

    granted: set[int] = field(default_factory=lambda: {1, 2, 3})
    withdrawn_at: dict[int, float] = field(default_factory=dict)

    async def read(self, key: int, seconds: float) -> int | None:
        found = key if key in self.granted else None
        await trio.sleep(seconds)
        return found


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "ask", "withdraw", "grant", "forget", "slow"]),
        st.integers(1, 3),
        st.floats(0, LARGEST_AGE_SECONDS),
    ),
    max_size=30,
)


@given(STEPS)
def test_no_value_is_used_longer_than_its_largest_age(
    steps: list[tuple[str, int, float]],
) -> None:
    async def play() -> None:
        cache: RightsCache[int] = RightsCache()
        rights = Rights()
        async with trio.open_nursery() as nursery:
            for step, key, pause in steps:
                await trio.sleep(pause)
                if step == "withdraw":
                    rights.granted.discard(key)
                    rights.withdrawn_at.setdefault(key, trio.current_time())
                elif step == "grant":
                    rights.granted.add(key)
                    rights.withdrawn_at.pop(key, None)
                elif step == "forget":
                    cache.forget()
                elif step == "slow":
                    nursery.start_soon(cache.get, key, partial(rights.read, key, 0.3))
                else:
                    asked = trio.current_time()
                    found = await cache.get(key, partial(rights.read, key, 0))
                    withdrawn = rights.withdrawn_at.get(key)
                    if withdrawn is not None and asked - withdrawn >= LARGEST_AGE_SECONDS:
                        assert found is None, "a withdrawn right is refused after the largest age"
                    assert found in (None, key), "no key gets the value of another"
                    if key in rights.granted and found is None:
                        raise AssertionError("absence is not kept")

    trio.run(play, clock=MockClock(autojump_threshold=0))


async def test_a_read_during_a_withdrawal_is_not_kept(autojump_clock: MockClock) -> None:
    cache: RightsCache[int] = RightsCache()
    rights = Rights()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cache.get, 1, lambda: rights.read(1, 0.2))
        await trio.sleep(0.1)
        rights.granted.discard(1)
        cache.forget()
    assert await cache.get(1, lambda: rights.read(1, 0)) is None


async def test_the_number_of_kept_values_is_bounded() -> None:
    cache: RightsCache[int] = RightsCache()

    async def read() -> int:
        return 1

    for key in range(VALUES_MOST + 10):
        await cache.get(key, read)
    assert len(cache) == VALUES_MOST


@pytest.fixture
async def processes(pool: Pool, passwords: Passwords) -> AsyncIterator[tuple[Api, Api]]:
    """Two processes on one database that get no notifications of each other."""
    async with (
        open_api(pool, FROZEN_NOW, passwords) as one,
        open_api(pool, FROZEN_NOW, passwords) as other,
    ):
        yield one, other


async def new_token(api: Api, **rights: object) -> tuple[str, dict[str, str]]:
    body = {"name": "script", "role": "viewer", **rights}
    made = await api.ask("org_admin", "POST", f"/api/v1/organizations/{api.org}/tokens", body)
    answer = await made.get_json()
    return answer["api_token"]["id"], {"Authorization": f"Bearer {answer['token']}"}


async def status(api: Api, who: dict[str, str] | str, path: str = "/api/v1/me") -> int:
    return int((await api.ask(who, "GET", path)).status_code)


async def test_a_revoked_token_is_refused_without_its_notification(
    mock_clock: MockClock, processes: tuple[Api, Api]
) -> None:
    here, there = processes
    uid, token = await new_token(here)
    assert [await status(api, token) for api in processes] == [200, 200]
    revoked = await here.ask("org_admin", "DELETE", f"/api/v1/tokens/{uid}")
    assert revoked.status_code == 204
    assert await status(here, token) == 401, "the process that revoked it refuses it at once"
    mock_clock.jump(LARGEST_AGE_SECONDS)
    assert await status(there, token) == 401


async def test_the_notification_of_a_write_hastens_the_refusal(
    mock_clock: MockClock, processes: tuple[Api, Api]
) -> None:
    here, there = processes
    uid, token = await new_token(here)
    assert await status(there, token) == 200
    await here.ask("org_admin", "DELETE", f"/api/v1/tokens/{uid}")
    there.context.forget()
    assert await status(there, token) == 401


async def test_a_deleted_project_is_not_found_in_time(
    mock_clock: MockClock, processes: tuple[Api, Api]
) -> None:
    here, there = processes
    _, token = await new_token(here)
    path = f"/api/v1/projects/{here.project}/monitors"
    assert [await status(api, token, path) for api in processes] == [200, 200]
    deleted = await here.ask("org_admin", "DELETE", f"/api/v1/projects/{here.project}")
    assert deleted.status_code in (202, 204)
    assert await status(here, token, path) == 404
    mock_clock.jump(LARGEST_AGE_SECONDS)
    assert await status(there, token, path) == 404


async def test_a_session_is_never_kept(processes: tuple[Api, Api]) -> None:
    here, there = processes
    assert await status(there, "viewer") == 200
    async with here.pool.transaction("sign_out_everywhere") as tx:
        await tx.execute("delete from sessions")
    assert await status(there, "viewer") == 401
