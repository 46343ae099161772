"""The listener speaks only HTTP/1, and refuses requests that a proxy could read otherwise."""

import h11
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.server.http1_protocol import refusal
from tests.support.app.cast import Api
from tests.support.app.sockets import served

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# SETTINGS, and HEADERS with GET / by HPACK's static table.
FRAMES = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x03\x01\x05\x00\x00\x00\x01\x82\x86\x84"
GET = b"GET /api/v1/version HTTP/1.1\r\nHost: x\r\n"
NEXT = b"GET /api/v1/me HTTP/1.1\r\nHost: x\r\n\r\n"


async def told(port: int, *sent: bytes) -> bytes:
    """Returns what the server sends until it closes, or within 5 s."""
    got = b""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        with trio.move_on_after(5):
            for part in sent:
                await stream.send_all(part)
            while part := await stream.receive_some(65_536):
                got += part
            return got
    return got + b"<open>"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (PREFACE + FRAMES, b"505"),
        (GET.replace(b"1.1", b"2.0") + b"\r\n", b"505"),
        (GET.replace(b"1.1", b"3.0") + b"\r\n", b"505"),
        (GET.replace(b"1.1", b"1.2") + b"\r\n", b"505"),
        (GET.replace(b"1.1", b"0.9") + b"\r\n", b"505"),
        (GET + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + NEXT, b"400"),
        (GET + b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n" + NEXT, b"400"),
        (GET.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"400"),
        (GET + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx" + NEXT, b"400"),
        (GET + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + NEXT, b"501"),
    ],
)
async def test_another_protocol_or_two_lengths_end_the_connection(
    api: Api, sent: bytes, status: bytes
) -> None:
    async with served(api.context) as port:
        got = await told(port, sent)
    assert got.startswith(b"HTTP/1.1 " + status), got
    assert got.count(b"HTTP/1.1 ") == 1, got
    assert not got.endswith(b"<open>")


async def test_an_upgrade_to_h2c_is_answered_by_http_1(api: Api) -> None:
    upgrade = (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n"
    )
    async with served(api.context) as port:
        got = await told(port, GET + upgrade + b"\r\n", PREFACE)
    head = got.partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 401"), got
    assert b"101" not in head.splitlines()[0]
    # The preface that follows is another request of HTTP/1.1, and is refused.
    assert got.count(b"HTTP/1.1 ") == 2, got
    assert b"HTTP/1.1 505" in got
    assert not got.endswith(b"<open>")


@pytest.mark.needs("curl")
async def test_curl_with_http_2_gets_an_answer_of_http_1(api: Api) -> None:
    async with served(api.context) as port:
        url = f"http://127.0.0.1:{port}/api/v1/version"
        ended = await trio.run_process(
            [
                "curl",
                "-sS",
                "--http2",
                "-w",
                "%{http_version} %{http_code}",
                "-o",
                "/dev/null",
                url,
            ],
            capture_stdout=True,
            check=False,
        )
    assert ended.stdout == b"1.1 401"


@pytest.mark.rule
@given(
    st.sampled_from([b"0.9", b"1.0", b"1.1", b"1.2", b"2.0", b"9.9"]),
    st.lists(
        st.sampled_from(
            [(b"Content-Length", b"3"), (b"Transfer-Encoding", b"chunked"), (b"Upgrade", b"h2c")]
        ),
        unique=True,
    ),
)
def test_a_request_has_one_version_and_at_most_one_length(
    version: bytes, headers: list[tuple[bytes, bytes]]
) -> None:
    request = h11.Request(
        method=b"GET", target=b"/", http_version=version, headers=[(b"Host", b"x"), *headers]
    )
    stated = {name for name, _ in headers} - {b"Upgrade"}
    if version not in (b"1.0", b"1.1"):
        assert refusal(request) == 505
    elif len(stated) == 2 or (version == b"1.0" and b"Transfer-Encoding" in stated):
        assert refusal(request) == 400
    else:
        assert refusal(request) is None
