"""A deadline is never held against a target that another party kept from its time."""

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check import phase_timer
from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.phase_timer import LATE_SHARE, Stopwatch, overdue
from leadline.probes.check.result import FailureClass, message
from tests.support.peers.servers import Prober, answer, serving

HOST = "127.0.0.1"
TOKEN, PROXY = FailureClass.TOKEN_ERROR, FailureClass.PROXY_ERROR


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(phase_timer, "perf_counter_ns", made)
    return made


def _late(watch: Stopwatch) -> FailureClass:
    failure = overdue(watch)
    assert isinstance(failure, TargetFailure)
    return failure.failure


@pytest.mark.parametrize(
    ("token", "proxy", "target", "failure"),
    [
        (27, 0, 3, TOKEN),
        (0, 27, 3, PROXY),
        (4, 8, 18, PROXY),
        (3, 0, 27, TOKEN),
        (2, 0, 28, FailureClass.TIMEOUT),
        (1, 1, 28, FailureClass.TIMEOUT),
        (0, 0, 30, FailureClass.TIMEOUT),
    ],
)
def test_the_late_party_is_named(
    clock: Clock, token: int, proxy: int, target: int, failure: FailureClass
) -> None:
    watch = Stopwatch()
    watch.stands_for = TOKEN
    clock.now += token
    watch.proceed()
    watch.stands_for = PROXY
    clock.now += proxy
    watch.stands_for = None
    clock.now += target
    assert _late(watch) is failure
    assert watch.elapsed_us() == (proxy + target) // 1_000
    watch.restart()
    clock.now += 1
    assert _late(watch) is FailureClass.TIMEOUT


@given(st.lists(st.tuples(st.sampled_from([TOKEN, PROXY, None]), st.integers(1, 1_000))))
def test_a_party_is_late_only_by_its_own_time(parts: list[tuple[FailureClass | None, int]]) -> None:
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phase_timer, "perf_counter_ns", clock)
        watch = Stopwatch()
        for party, spent in parts:
            watch.stands_for = party
            clock.now += spent
        watch.proceed()
        lost = sum(spent for party, spent in parts if party is not None)
        is_late = lost > 0 and lost >= LATE_SHARE * sum(spent for _, spent in parts)
        assert (watch.late_party is not None) == is_late


@pytest.mark.parametrize("party", [TOKEN, PROXY])
async def test_a_target_that_had_less_than_the_timeout_is_not_blamed(
    prober: Prober, monkeypatch: pytest.MonkeyPatch, party: FailureClass
) -> None:
    # Any time that another party takes counts.
    monkeypatch.setattr(phase_timer, "LATE_SHARE", 0.0)

    async def serve(stream: trio.SocketStream) -> None:
        while data := bytes(await stream.receive_some(65_536)):
            if data.startswith(b"POST /token"):
                await stream.send_all(answer(b'{"access_token":"t","expires_in":600}'))
            elif data.startswith(b"CONNECT"):
                await stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")

    async with serving(serve) as port:
        site = f"http://{HOST}:{port}"
        oauth2 = {
            "auth_mode": "oauth2",
            "oauth2_token_url": f"{site}/token",
            "oauth2_client_id": "a",
            "oauth2_client_secret": "b",
        }
        config = oauth2 if party is TOKEN else {"proxy_url": site}
        result = await prober.check("http", f"{site}/", timeout_seconds=1, **config)
        assert result.msg == message(party, HOST), result
        plain = await prober.check("http", f"{site}/", timeout_seconds=1)
        assert plain.msg == message(FailureClass.TIMEOUT, HOST)
