"""PromQL checks against Prometheus, open and with TLS and a password, and against other peers."""

import json
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
import trustme

from leadline.probes.check.check import validate
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from leadline.probes.kinds.promql import VALUES_MOST
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.real_servers import HOST, running, write_certificate
from tests.support.peers.servers import Prober, answer, answering, read_head, serving
from tests.support.processes.ports import free_port

# The server needs a bcrypt hash of its password, which Python cannot compute from 3.13 on.
USER, PASSWORD = "watcher", "canary-7f3a9c51"
HASH = "$2b$04$cB4R6qGcpaViPJGIhgD8h.T94H7R8LsgzfxEySB6MSTAkpowwVIDS"
BASIC = {"auth_mode": "basic", "username": USER, "password": PASSWORD}
THREE = " or ".join(f'label_replace(vector({n}), "a", "{n}", "", "")' for n in (1, 2, 9))


def down(failure: FailureClass) -> str:
    return message(failure, HOST)


@contextmanager
def prometheus(folder: Path, web: str = "") -> Iterator[int]:
    """Starts a server that scrapes no target, and returns its port. The queries are arithmetic."""
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
    (folder / "web.yml").write_text(web)
    port = free_port()
    scheme = "https" if "tls_server_config" in web else "http"

    def ready() -> bool:
        try:
            urllib.request.urlopen(f"{scheme}://{HOST}:{port}/-/ready", timeout=5)
        except urllib.error.HTTPError as error:
            return error.code == 401
        except OSError as error:
            return "CERTIFICATE_VERIFY_FAILED" in str(error)
        return True

    command = [
        *("prometheus", f"--config.file={folder}/prometheus.yml", "--log.level=error"),
        *(f"--storage.tsdb.path={folder}/data", f"--web.listen-address={HOST}:{port}"),
        f"--web.config.file={folder}/web.yml",
    ]
    with running(command, folder / "log", ready):
        yield port


@pytest.fixture(scope="module")
def open_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with prometheus(tmp_path_factory.mktemp("open")) as port:
        yield port


@pytest.fixture(scope="module")
def guarded_port(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("guarded")
    chain, key = write_certificate(authority, folder, HOST)
    web = f"tls_server_config: {{cert_file: {chain}, key_file: {key}}}\n"
    with prometheus(folder, f'{web}basic_auth_users: {{{USER}: "{HASH}"}}\n') as port:
        yield port


# Prometheus.


@pytest.mark.needs("prometheus")
@pytest.mark.parametrize(
    ("query", "conditions", "failure"),
    [
        ("1 + 1", [], None),
        ("1 + 1", ["[RESULT] == 2", "[CONNECTED] == true", "[IP] == 127.0.0.1"], None),
        ("1 + 1", ["[RESULT] matches ^2$"], None),
        ("1 + 1", ["[RESULT] < 2"], FailureClass.CONDITION_FAILED),
        ("vector(0.25)", ["[RESULT] < 0.3", "[RESULT] exists"], None),
        ("1 / 0", ["[RESULT] > 1e30"], None),
        ("-1 / 0", ["[RESULT] < 0"], None),
        ('"a text"', ["[RESULT] == a text"], None),
        ("\n  vector(1)\n  > 0\n", ["[RESULT] == 1"], None),
        # Empty results.
        ("vector(1) > 2", [], FailureClass.CONDITION_FAILED),
        ("vector(1) > 2", ["[RESULT] < 5"], FailureClass.CONDITION_FAILED),
        ("vector(1) > 2", ["[RESULT] != 5"], FailureClass.CONDITION_FAILED),
        ("vector(1) > 2", ["[RESULT] exists"], FailureClass.CONDITION_FAILED),
        # Results without a number.
        ("vector(0) / 0", [], None),
        ("vector(0) / 0", ["[RESULT] != 5"], FailureClass.CONDITION_FAILED),
        ("0 / 0", ["[RESULT] < 5"], FailureClass.CONDITION_FAILED),
        # Several samples.
        (THREE, [], None),
        (THREE, ["[RESULT] < 10", "[RESULT] exists", "[RESULT] != 3"], None),
        (THREE, ["[RESULT] < 5"], FailureClass.CONDITION_FAILED),
        (THREE, ["[RESULT] > 1"], FailureClass.CONDITION_FAILED),
        (THREE, ["[RESULT] == 1"], FailureClass.CONDITION_FAILED),
        (THREE, ["[RESULT] != 9"], FailureClass.CONDITION_FAILED),
        ("vector(3)[1m:10s]", ["[RESULT] == 3"], None),
        ("vector(time())[1m:10s]", ["[RESULT] < 5"], FailureClass.CONDITION_FAILED),
        # Invalid queries.
        ("sum(", [], FailureClass.HTTP_STATUS),
    ],
)
async def test_a_condition_must_be_true_for_every_sample(
    prober: Prober,
    open_port: int,
    query: str,
    conditions: list[str],
    failure: FailureClass | None,
) -> None:
    for base in (f"http://{HOST}:{open_port}", f"http://{HOST}:{open_port}/"):
        result = await prober.check("promql", base, *conditions, query=query)
        assert result.msg == (down(failure) if failure else "")
        assert result.code == (400 if failure is FailureClass.HTTP_STATUS else 200)


@pytest.mark.needs("prometheus")
async def test_an_oversized_result_is_too_large(prober: Prober, open_port: int) -> None:
    base = f"http://{HOST}:{open_port}"
    for values, failure in ((400, None), (600, FailureClass.RESPONSE_TOO_LARGE)):
        query = f"vector(time())[{values}m:1m]"
        result = await prober.check("promql", base, query=query)
        assert result.msg == (down(failure) if failure else ""), values
    # About 2 MiB, of which the probe reads at most its limit.
    result = await prober.check("promql", base, query="vector(time())[24h:1s]")
    assert result.msg == down(FailureClass.RESPONSE_TOO_LARGE)


@pytest.mark.needs("prometheus")
async def test_a_wrong_password_is_auth_failed(prober: Prober, guarded_port: int) -> None:
    base = f"https://{HOST}:{guarded_port}"
    referring = {"auth_mode": "basic", "username": USER, "password_ref": "metrics"}
    for config, secret, failure in (
        (BASIC, {}, None),
        (referring, {"password": PASSWORD}, None),
        (referring, {"password": "wrong"}, FailureClass.AUTH_FAILED),
        ({**BASIC, "username": "nobody"}, {}, FailureClass.AUTH_FAILED),
        ({**BASIC, "auth_mode": "none"}, {}, FailureClass.AUTH_FAILED),
        ({}, {}, FailureClass.AUTH_FAILED),
    ):
        result = await prober.check(
            "promql", base, "[RESULT] == 1", secrets=secret, query="vector(1)", **config
        )
        assert result.msg == (down(failure) if failure else ""), config
        assert PASSWORD not in repr(result)
    left = await prober.check("promql", base, "[CERT_EXPIRY] > 1h", query="vector(1)", **BASIC)
    assert left.outcome is RunOutcome.UP


@pytest.mark.needs("prometheus")
async def test_an_untrusted_certificate_is_a_tls_error(
    prober: Prober, authority: trustme.CA, tmp_path: Path
) -> None:
    for number, (issuer, name, expired) in enumerate(
        (
            (trustme.CA(), HOST, False),
            (authority, "other.example", False),
            (authority, HOST, True),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        chain, key = write_certificate(issuer, folder, name, expired=expired)
        web = f"tls_server_config: {{cert_file: {chain}, key_file: {key}}}\n"
        with prometheus(folder, web) as port:
            result = await prober.check("promql", f"https://{HOST}:{port}", query="1")
        assert result.msg == down(FailureClass.TLS_ERROR), number
        stopped = await prober.check("promql", f"https://{HOST}:{port}", query="1")
        assert stopped.msg == down(FailureClass.CONNECT_REFUSED)


@pytest.mark.needs("prometheus")
async def test_cancelled_runs_leave_nothing_open(
    prober: Prober, open_port: int, guarded_port: int
) -> None:
    base = f"http://{HOST}:{open_port}"
    await leaves_nothing(lambda: prober.check("promql", base, "[RESULT] < 10", query=THREE))
    secure = f"https://{HOST}:{guarded_port}"
    await leaves_nothing(lambda: prober.check("promql", secure, query="vector(1)", **BASIC))


# Other peers.


def response_of(result_type: object, result: object) -> bytes:
    data = {"resultType": result_type, "result": result}
    return json.dumps({"status": "success", "data": data}).encode()


def samples(count: int) -> list[object]:
    return [{"metric": {}, "value": [1, str(n)]} for n in range(count)]


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        (response_of("vector", samples(VALUES_MOST)), None),
        (response_of("vector", samples(VALUES_MOST + 1)), FailureClass.RESPONSE_TOO_LARGE),
        (response_of("vector", [{}] * 20_000), FailureClass.RESPONSE_TOO_LARGE),
        (response_of("vector", [{"values": [[]] * 20_000}]), FailureClass.RESPONSE_TOO_LARGE),
        (response_of("vector", []), FailureClass.CONDITION_FAILED),
        (response_of("scalar", [1, "5"])[:-1] + b',"warnings":["some are missing"]}', None),
        (response_of("scalar", [1, 5]), FailureClass.PROTOCOL_ERROR),
        (response_of("scalar", [1]), FailureClass.PROTOCOL_ERROR),
        (response_of("scalar", [1, "five"]), FailureClass.PROTOCOL_ERROR),
        (response_of("vector", {"value": [1, "5"]}), FailureClass.PROTOCOL_ERROR),
        (response_of("streams", []), FailureClass.PROTOCOL_ERROR),
        (response_of(None, []), FailureClass.PROTOCOL_ERROR),
        (b'{"status":"error","errorType":"internal"}', FailureClass.PROTOCOL_ERROR),
        (b'{"status":"success"}', FailureClass.PROTOCOL_ERROR),
        (b"<html>Sign in</html>", FailureClass.PROTOCOL_ERROR),
        (b"\xff\xfe", FailureClass.PROTOCOL_ERROR),
        (b"[" * 100_000, FailureClass.PROTOCOL_ERROR),
        (b"", FailureClass.PROTOCOL_ERROR),
        (b" " * 2_000_000, FailureClass.RESPONSE_TOO_LARGE),
    ],
)
async def test_malformed_answers_get_their_failure_class(
    prober: Prober, body: bytes, failure: FailureClass | None
) -> None:
    async with serving(answering(answer(body))) as port:
        result = await prober.check("promql", f"http://{HOST}:{port}", query="up")
    assert result.msg == (down(failure) if failure else "")


async def test_a_histogram_is_a_sample_without_a_number(prober: Prober) -> None:
    body = response_of("vector", [{"metric": {}, "histogram": [1, {"count": "5", "sum": "1"}]}])
    async with serving(answering(answer(body))) as port:
        base = f"http://{HOST}:{port}"
        assert (await prober.check("promql", base, query="up")).outcome is RunOutcome.UP
        result = await prober.check("promql", base, "[RESULT] != 7", query="up")
    assert result.msg == down(FailureClass.CONDITION_FAILED)


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        ("401 Unauthorized", FailureClass.AUTH_FAILED),
        ("403 Forbidden", FailureClass.AUTH_FAILED),
        ("422 Unprocessable Entity", FailureClass.HTTP_STATUS),
        ("503 Service Unavailable", FailureClass.HTTP_STATUS),
    ],
)
async def test_an_error_status_is_the_code(
    prober: Prober, status: str, failure: FailureClass
) -> None:
    async with serving(answering(answer(response_of("scalar", [1, "5"]), status))) as port:
        result = await prober.check("promql", f"http://{HOST}:{port}", query="up")
    assert (result.msg, result.code) == (down(failure), int(status[:3]))


async def test_redirects_keep_the_query_and_drop_credentials(
    prober: Prober,
) -> None:
    heads: list[bytes] = []
    credential = b64encode(f"{USER}:{PASSWORD}".encode())

    async def final(stream: trio.SocketStream) -> None:
        heads.append(await read_head(stream))
        await stream.send_all(answer(response_of("scalar", [1, "5"])))

    async with serving(final) as other:

        async def leading(stream: trio.SocketStream) -> None:
            heads.append(await read_head(stream))
            path = heads[-1].split()[1].decode()
            await stream.send_all(answer(b"", "307 T", f"location: http://{HOST}:{other}{path}"))

        async with serving(leading) as port:
            base = f"http://{HOST}:{port}/mine/"
            result = await prober.check("promql", base, query='sum by(a) ({b=~"ü&+%"})', **BASIC)
    assert result.outcome is RunOutcome.UP
    first, second = heads
    line = (
        b"GET /mine/api/v1/query?query=sum+by%28a%29+%28%7Bb%3D~%22%C3%BC%26%2B%25%22%7D%29"
        b"&timeout=10s HTTP/1.1"
    )
    assert first.startswith(line)
    assert second.startswith(line)
    assert credential in first
    assert credential not in second


async def test_silence_and_slow_bytes_are_a_timeout(prober: Prober) -> None:
    async def silent(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async def dripping(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
        while True:
            await stream.send_all(b" ")
            await trio.sleep(0.05)

    for handler in (silent, dripping):
        async with serving(handler) as port:
            result = await prober.check(
                "promql", f"http://{HOST}:{port}", query="up", timeout_seconds=1
            )
        assert result.msg == down(FailureClass.TIMEOUT)


async def test_a_missing_secret_is_a_local_failure(prober: Prober) -> None:
    config = {"auth_mode": "basic", "username": USER, "password_ref": "metrics"}
    result = await prober.check("promql", f"http://{HOST}:1", query="up", **config)
    assert (result.outcome, result.unknown_reason) == (
        RunOutcome.UNKNOWN,
        UnknownReason.MISSING_REFERENCE,
    )


def test_invalid_definitions_are_refused() -> None:
    def faults(target: str = "https://metrics.example/mine", **config: object) -> list[str]:
        return [f.field for f in validate("promql", target, None, config, [])]

    assert faults(query="up") == []
    assert faults(query="u" * 1_024, auth_mode="none") == []
    assert faults(query="u" * 1_025) == ["config.query"]
    assert faults() == faults(query="") == faults(query=" \n\t ") == ["config.query"]
    assert faults(query="up", auth_mode="bearer") == ["config.auth_mode"]
    assert faults(query="up", auth_mode="basic") == ["config.username", "config.password"]
    assert faults(query="up", auth_mode="basic", username="a:b", password="x") == [
        "config.username"
    ]
    assert faults(query="up", **{**BASIC, "password": ""}) == ["config.password"]
    assert faults(query="up", **BASIC, password_ref="x") == ["config.password"]
    assert faults("https://metrics.example/?a=b", query="up") == ["target"]
    assert faults("metrics.example:9090", query="up") == ["target"]
    [fault] = validate("promql", "https://a.example", None, {"query": "up"}, ["[STATUS] == 200"])
    assert fault.field == "conditions"
