"""HTTP/2 against nginx, with TLS and without, and against peers that misuse it."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import h2.config
import h2.connection
import h2.errors
import h2.events
import pytest
import trio
import trustme
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.result import FailureClass, Result, RunOutcome, message
from leadline.probes.net.http2 import CHUNK_LEAST, CHUNK_MOST, PIECES_MOST, GoAwayFilter
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.real_servers import HOST, listens, running
from tests.support.peers.servers import Handler, Prober, deadline_for, gzip_bomb, serving
from tests.support.processes.ports import free_port

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
NGINX = """
daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 512; }}
http {{
  access_log off; client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir};
  uwsgi_temp_path {dir}; scgi_temp_path {dir}; gzip on; gzip_min_length 1; gzip_types *;
  ssl_certificate {dir}/server.pem; ssl_certificate_key {dir}/server.pem;
  server {{
    listen 127.0.0.1:{tls} ssl http2; listen 127.0.0.1:{plain} http2;
    location = /health {{
      default_type application/json; return 200 '{{"status": "UP", "v": "$server_protocol"}}';
    }}
    location = /old {{ return 301 https://127.0.0.1:{tls}/health; }}
    location = /large {{ root {dir}; }}
    location = /echo {{ proxy_pass http://127.0.0.1:{one}/sink; }}
  }}
  server {{
    listen 127.0.0.1:{last} http2; keepalive_timeout 0;
    location / {{ default_type text/plain; return 200 'the last'; }}
  }}
  server {{
    listen 127.0.0.1:{one_tls} ssl; listen 127.0.0.1:{one};
    location / {{ default_type text/plain; return 200 '$server_protocol $content_length'; }}
  }}
}}
"""


@dataclass(frozen=True)
class Nginx:
    tls: int
    plain: int
    one: int
    one_tls: int
    last: int


@pytest.fixture(scope="module")
def nginx(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nginx]:
    folder = tmp_path_factory.mktemp("nginx")
    pem = authority.issue_cert(HOST).private_key_and_cert_chain_pem
    pem.write_to_path(str(folder / "server.pem"))
    (folder / "large").write_bytes(b"x" * 3_000_000)
    server = Nginx(*(free_port() for _ in range(5)))
    ports = asdict(server)
    (folder / "nginx.conf").write_text(NGINX.format(dir=folder, **ports))
    command = ["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder)]
    with running(command, folder / "log", lambda: listens(server.tls)):
        yield server


async def check(prober: Prober, url: str, *conditions: str, **settings: object) -> Result:
    return await prober.check("http", url, *conditions, http_version="2", **settings)


def is_down(result: Result, failure: FailureClass) -> bool:
    return result.outcome is RunOutcome.DOWN and result.msg == message(failure, HOST)


@pytest.mark.needs("nginx")
async def test_http2_with_tls_and_without(prober: Prober, nginx: Nginx) -> None:
    for url in (f"https://{HOST}:{nginx.tls}/health", f"http://{HOST}:{nginx.plain}/health"):
        result = await check(
            prober, url, "[BODY].status == UP", "[BODY].v == HTTP/2.0", "[STATUS] == 200"
        )
        assert (result.outcome, result.code) == (RunOutcome.UP, 200), url
        assert result.phases.first_byte_us is not None


@pytest.mark.needs("nginx")
async def test_http1_is_used_without_the_setting(prober: Prober, nginx: Nginx) -> None:
    url = f"https://{HOST}:{nginx.tls}/health"
    result = await prober.check("http", url, "[BODY].v == HTTP/1.1")
    assert result.outcome is RunOutcome.UP


@pytest.mark.needs("nginx")
async def test_redirects_and_certificate_expiry(prober: Prober, nginx: Nginx) -> None:
    url = f"https://{HOST}:{nginx.tls}/old"
    result = await check(prober, url, "[STATUS] == 200", "[CERT_EXPIRY] > 1h")
    assert result.outcome is RunOutcome.UP
    assert (await check(prober, url, follow_redirects=False)).code == 301


@pytest.mark.needs("nginx")
@pytest.mark.parametrize("size", [1, 16_384, 65_536])
async def test_a_request_body_obeys_flow_control(prober: Prober, nginx: Nginx, size: int) -> None:
    url = f"https://{HOST}:{nginx.tls}/echo"
    result = await check(prober, url, f"[BODY] contains {size}", method="POST", body="x" * size)
    assert result.outcome is RunOutcome.UP, result


@pytest.mark.needs("nginx")
async def test_an_oversized_body_fails_only_with_a_body_condition(
    prober: Prober, nginx: Nginx
) -> None:
    url = f"https://{HOST}:{nginx.tls}/large"
    assert is_down(await check(prober, url, "[BODY] contains x"), FailureClass.RESPONSE_TOO_LARGE)
    assert (await check(prober, url)).outcome is RunOutcome.UP


@pytest.mark.needs("nginx")
async def test_a_server_without_http2_is_down(prober: Prober, nginx: Nginx) -> None:
    by_tls = await check(prober, f"https://{HOST}:{nginx.one_tls}/")
    # It may leave ALPN unanswered, or refuse the handshake for it.
    assert is_down(by_tls, FailureClass.PROTOCOL_ERROR) or is_down(by_tls, FailureClass.TLS_ERROR)
    plain = await check(prober, f"http://{HOST}:{nginx.one}/")
    assert is_down(plain, FailureClass.PROTOCOL_ERROR)


@pytest.mark.needs("nginx")
async def test_cancelled_runs_leave_nothing_open(prober: Prober, nginx: Nginx) -> None:
    url = f"https://{HOST}:{nginx.tls}/health"
    await leaves_nothing(lambda: check(prober, url, "[BODY].status == UP"))


# Peers that misuse the protocol.


async def opened(stream: trio.SocketStream) -> h2.connection.H2Connection:
    """The server side of a connection after the request has arrived."""
    talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    talk.initiate_connection()
    asked = False
    while not asked:
        await stream.send_all(talk.data_to_send())
        data = await stream.receive_some(65_536)
        if not data:
            raise trio.BrokenResourceError
        asked = any(isinstance(e, h2.events.StreamEnded) for e in talk.receive_data(data))
    return talk


def sending(*steps: bytes, then_close: bool = False) -> Handler:
    async def handle(stream: trio.SocketStream) -> None:
        await stream.receive_some(65_536)
        for step in steps:
            await stream.send_all(step)
        if not then_close:
            await trio.sleep_forever()

    return handle


async def endless_pings(stream: trio.SocketStream) -> None:
    await opened(stream)
    while True:
        await stream.send_all(b"\x00\x00\x08\x06\x00\x00\x00\x00\x00" + b"12345678")


async def endless_settings(stream: trio.SocketStream) -> None:
    await opened(stream)
    while True:
        await stream.send_all(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" * 100)


async def endless_continue(stream: trio.SocketStream) -> None:
    talk = await opened(stream)
    while True:
        talk.send_headers(1, [(":status", "100")])
        await stream.send_all(talk.data_to_send())


async def large_head(stream: trio.SocketStream) -> None:
    talk = await opened(stream)
    fields = [(":status", "200"), *((f"x-{n}", "y" * 4_000) for n in range(40))]
    talk.send_headers(1, fields)
    await stream.send_all(talk.data_to_send())
    await trio.sleep_forever()


async def bomb(stream: trio.SocketStream) -> None:
    talk = await opened(stream)
    talk.send_headers(1, [(":status", "200"), ("content-encoding", "gzip")])
    data = gzip_bomb()[:60_000]
    for at in range(0, len(data), 16_384):
        talk.send_data(1, data[at : at + 16_384])
    talk.end_stream(1)
    await stream.send_all(talk.data_to_send())
    await trio.sleep_forever()


async def refused_stream(stream: trio.SocketStream) -> None:
    talk = await opened(stream)
    talk.reset_stream(1, h2.errors.ErrorCodes.REFUSED_STREAM)
    await stream.send_all(talk.data_to_send())
    await trio.sleep_forever()


async def going_away(stream: trio.SocketStream) -> None:
    talk = await opened(stream)
    talk.close_connection(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
    await stream.send_all(talk.data_to_send())


async def half_an_answer(stream: trio.SocketStream) -> None:
    talk = await opened(stream)
    talk.send_headers(1, [(":status", "200")])
    talk.send_data(1, b"only this")
    await stream.send_all(talk.data_to_send())
    await stream.send_eof()
    await trio.sleep_forever()


async def dripping(stream: trio.SocketStream) -> None:
    talk = await opened(stream)
    talk.send_headers(1, [(":status", "200")])
    while True:
        talk.send_data(1, b".")
        await stream.send_all(talk.data_to_send())
        await trio.sleep(0.05)


MISUSES: dict[str, tuple[Handler, FailureClass]] = {
    "silent": (sending(), FailureClass.TIMEOUT),
    "dripping": (dripping, FailureClass.TIMEOUT),
    "closing": (sending(then_close=True), FailureClass.PROTOCOL_ERROR),
    "garbage": (sending(b"\xff" * 64), FailureClass.PROTOCOL_ERROR),
    "http 1": (sending(b"HTTP/1.1 400 Bad Request\r\n\r\n"), FailureClass.PROTOCOL_ERROR),
    "endless pings": (endless_pings, FailureClass.RESPONSE_TOO_LARGE),
    "endless settings": (endless_settings, FailureClass.RESPONSE_TOO_LARGE),
    "endless continue": (endless_continue, FailureClass.PROTOCOL_ERROR),
    "large head": (large_head, FailureClass.RESPONSE_TOO_LARGE),
    "bomb": (bomb, FailureClass.RESPONSE_TOO_LARGE),
    "refused stream": (refused_stream, FailureClass.PROTOCOL_ERROR),
    "going away": (going_away, FailureClass.PROTOCOL_ERROR),
    "half an answer": (half_an_answer, FailureClass.PROTOCOL_ERROR),
}


@pytest.mark.parametrize("name", MISUSES)
async def test_a_misbehaving_peer_gets_its_failure_class_in_time(prober: Prober, name: str) -> None:
    handler, failure = MISUSES[name]
    async with serving(handler) as port:
        result = await check(
            prober,
            f"http://{HOST}:{port}/",
            "[BODY] contains x",
            timeout_seconds=deadline_for(failure),
        )
    assert is_down(result, failure), result


def test_the_event_limit_exceeds_any_normal_answer() -> None:
    """A megabyte arrives in frames of 16 KiB from common servers, and of 64 bytes from the most
    unusual ones.
    """
    assert PIECES_MOST > 1024 * 1024 // 64


async def test_many_small_frames_are_read_in_small_pieces(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece that is read is processed without a pause, so its size limits the blocking of the
    loop.
    """
    sizes: list[int] = []
    receive = h2.connection.H2Connection.receive_data

    def noted(self: h2.connection.H2Connection, data: bytes) -> list[h2.events.Event]:
        sizes.append(len(data))
        return receive(self, data)

    monkeypatch.setattr(h2.connection.H2Connection, "receive_data", noted)
    async with serving(endless_settings) as port:
        await check(prober, f"http://{HOST}:{port}/", timeout_seconds=2)
    assert len(sizes) > 3
    # The first piece is small, the next can have twice its size; then the frame size is known.
    assert max(sizes) <= 2 * CHUNK_LEAST < CHUNK_MOST


# A server that accepts no further request.


def frame(kind: int, payload: bytes, stream: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + stream.to_bytes(4, "big") + payload


def goaway(last: int, code: int = 0, told: bytes = b"") -> bytes:
    return frame(7, last.to_bytes(4, "big") + code.to_bytes(4, "big") + told)


@pytest.mark.needs("nginx")
async def test_a_goaway_before_the_answer_is_up(prober: Prober, nginx: Nginx) -> None:
    result = await check(prober, f"http://{HOST}:{nginx.last}/", "[BODY] == the last")
    assert result.outcome is RunOutcome.UP, result


FRAMES = st.builds(frame, st.integers(0, 6), st.binary(max_size=40), st.integers(0, 1))
GENTLE = st.builds(goaway, st.sampled_from([1, 3, 2**31 - 1]), st.just(0), st.binary(max_size=20))
HARSH = st.one_of(
    st.builds(goaway, st.just(0)),
    st.builds(goaway, st.just(1), st.integers(1, 13), st.binary(max_size=20)),
    st.builds(goaway, st.just(1), st.just(0), st.just(b"x" * 2_000)),
    st.builds(frame, st.just(7), st.binary(max_size=7)),
)


@given(st.lists(FRAMES | GENTLE | HARSH), st.data())
def test_only_a_graceful_goaway_is_filtered_for_any_segmentation(
    frames: list[bytes], data: st.DataObject
) -> None:
    wire = b"".join(frames)
    gentle = [
        one
        for one in frames
        if one[3] == 7
        and 17 <= len(one) < 1_000
        and one[9:17] >= goaway(1)[9:]
        and one[13:17] == bytes(4)
    ]
    farewells, heard = GoAwayFilter(), b""
    while wire:
        size = data.draw(st.integers(1, len(wire)))
        heard += farewells.without(wire[:size])
        wire = wire[size:]
    assert heard == b"".join(one for one in frames if one not in gentle)
