"""TCP checks: the connection, and conditions on the answer to the sent text."""

import pytest
import trio

from leadline.probes.check.result import RunOutcome
from tests.support.peers.servers import Prober, serving
from tests.support.processes.ports import refusing_port


async def silent(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def banner(stream: trio.SocketStream) -> None:
    await stream.send_all(b"220 mail.")
    await trio.sleep(0.01)
    await stream.send_all(b"example ESMTP\r\n")
    await trio.sleep_forever()


async def echo(stream: trio.SocketStream) -> None:
    await stream.send_all(b"you said " + await stream.receive_some(1_000))


async def endless(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(b"." * 65_536)


async def test_a_connection_is_up(prober: Prober) -> None:
    async with serving(silent) as port:
        target = f"127.0.0.1:{port}"
        assert (await prober.check("tcp", target)).outcome is RunOutcome.UP
        both = await prober.check("tcp", target, "[CONNECTED] == true", "[IP] == 127.0.0.1")
        closed_wanted = await prober.check("tcp", target, "[CONNECTED] == false")
    assert both.outcome is RunOutcome.UP
    assert closed_wanted.msg == "condition_failed 127.0.0.1"
    with refusing_port() as port:
        target = f"127.0.0.1:{port}"
        assert (await prober.check("tcp", target)).msg == "connect_refused 127.0.0.1"
        assert (await prober.check("tcp", target, "[CONNECTED] == false")).outcome is RunOutcome.UP


async def test_a_banner_is_read_until_the_conditions_are_true(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(banner) as port:
        target = f"127.0.0.1:{port}"
        with monkeypatch.context() as patient:
            # A probe that waits for a quiet connection reaches its deadline, and is not up.
            patient.setattr("leadline.probes.kinds.tcp.QUIET_SECONDS", 3_600)
            good = await prober.check("tcp", target, "[BODY] matches ^220 .*ESMTP")
        bad = await prober.check("tcp", target, "[BODY] contains POP3", timeout_seconds=3)
    assert good.outcome is RunOutcome.UP
    assert bad.msg == "condition_failed 127.0.0.1"


async def test_conditions_apply_to_the_answer(prober: Prober) -> None:
    async with serving(echo) as port:
        target = f"127.0.0.1:{port}"
        good = await prober.check("tcp", target, "[BODY] == you said PING", send="PING\r\n")
        bad = await prober.check("tcp", target, "[BODY] == PONG", send="PING\r\n")
    assert good.outcome is RunOutcome.UP
    assert bad.msg == "condition_failed 127.0.0.1"


async def test_silence_with_a_body_condition_is_a_timeout(prober: Prober) -> None:
    async with serving(silent) as port:
        result = await prober.check("tcp", f"127.0.0.1:{port}", "[BODY] exists", timeout_seconds=1)
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, "timeout 127.0.0.1")


async def test_an_endless_answer_is_too_large(prober: Prober) -> None:
    async with serving(endless) as port:
        result = await prober.check("tcp", f"127.0.0.1:{port}", "[BODY] contains x")
    assert result.msg == "response_too_large 127.0.0.1"
