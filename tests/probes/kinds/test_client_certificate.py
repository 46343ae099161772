"""Client certificates of http, promql and websocket checks against nginx, which requires one, and
the rules of the settings.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
import trio
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.check import validate
from leadline.probes.check.client_certificate import certificate_faults, key_fault
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason, message
from tests.support.peers.real_servers import (
    listens,
    open_folder,
    pems,
    running,
    write_certificate,
)
from tests.support.peers.servers import Prober, answer, serving
from tests.support.processes.ports import free_port

HOST = "127.0.0.1"
TYPES = ("http", "promql", "websocket")


@pytest.fixture(scope="module")
def clients() -> trustme.CA:
    return trustme.CA()


@dataclass(frozen=True)
class Mutual:
    """`tls12` and `tls13` require a certificate, `optional` asks for one."""

    tls12: str
    tls13: str
    optional: str


_CONF = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  ssl_certificate {chain}; ssl_certificate_key {key}; ssl_client_certificate {folder}/clients.pem;
  {servers}
}}
"""
_SERVER = """
  server {{
    listen {host}:{port} ssl; ssl_protocols {protocol}; ssl_verify_client {verify};
    location /api/v1/query {{
      default_type application/json;
      return 200 '{{"status":"success","data":{{"resultType":"scalar","result":[1,"7"]}}}}';
    }}
    location / {{ return 200 "subject=$ssl_client_s_dn verified=$ssl_client_verify"; }}
  }}
"""


@contextmanager
def nginx(authority: trustme.CA, clients: trustme.CA) -> Iterator[Mutual]:
    with open_folder() as folder:
        chain, key = write_certificate(authority, folder, HOST)
        clients.cert_pem.write_to_path(str(folder / "clients.pem"))
        ports = [free_port() for _ in range(3)]
        modes = [("TLSv1.2", "on"), ("TLSv1.3", "on"), ("TLSv1.3", "optional")]
        servers = "".join(
            _SERVER.format(host=HOST, port=port, protocol=protocol, verify=verify)
            for port, (protocol, verify) in zip(ports, modes, strict=True)
        )
        conf = folder / "nginx.conf"
        conf.write_text(_CONF.format(folder=folder, chain=chain, key=key, servers=servers))
        command = ["nginx", "-p", str(folder), "-c", str(conf)]
        with running(command, folder / "out.log", lambda: listens(ports[-1])):
            yield Mutual(*[f"https://{HOST}:{port}/" for port in ports])


@pytest.fixture(scope="module")
def mutual(authority: trustme.CA, clients: trustme.CA) -> Iterator[Mutual]:
    with nginx(authority, clients) as servers:
        yield servers


pytestmark = [pytest.mark.needs("nginx")]


async def test_nginx_knows_the_client(prober: Prober, mutual: Mutual, clients: trustme.CA) -> None:
    chain, key = pems(clients.issue_cert("leadline.example"))
    given = {"client_cert": chain, "client_key": key}
    for url in (mutual.tls12, mutual.tls13, mutual.optional):
        wants = "[BODY] contains verified=SUCCESS"
        known = await prober.check("http", url, wants, "[CERT_EXPIRY] > 1d", **given)
        assert known.outcome is RunOutcome.UP, (known, known.bug)
        none = await prober.check("http", url, wants)
        assert none.outcome is RunOutcome.DOWN
    named = await prober.check(
        "http", mutual.tls13, client_cert=chain, client_key_ref="key", secrets={"client_key": key}
    )
    assert named.outcome is RunOutcome.UP
    two = await prober.check("promql", mutual.tls13, "[RESULT] == 7", query="1", **given)
    assert two.outcome is RunOutcome.UP, two
    # nginx answers the handshake of a WebSocket with 200, and only to a known client.
    url = mutual.tls13.replace("https", "wss")
    socket = await prober.check("websocket", url, **given)
    assert (socket.msg, socket.code) == (message(FailureClass.HTTP_STATUS, HOST), 200)
    strange = await prober.check("websocket", url)
    assert (strange.msg, strange.code) == (message(FailureClass.HTTP_STATUS, HOST), 400)


async def test_an_unknown_client_is_refused(prober: Prober, mutual: Mutual) -> None:
    chain, key = pems(trustme.CA().issue_cert("stranger.example"))
    for url in (mutual.tls12, mutual.tls13):
        refused = await prober.check("http", url, client_cert=chain, client_key=key)
        assert (refused.msg, refused.code) == (message(FailureClass.HTTP_STATUS, HOST), 400)


@pytest.mark.parametrize("kind", TYPES)
async def test_an_expired_certificate_is_a_class_of_its_own(
    prober: Prober, clients: trustme.CA, mutual: Mutual, kind: str
) -> None:
    ended = datetime.now(UTC) - timedelta(minutes=1)
    chain, key = pems(clients.issue_cert("leadline.example", not_after=ended))
    url = mutual.tls13.replace("https", "wss") if kind == "websocket" else mutual.tls13
    more = {"query": "1"} if kind == "promql" else {}
    result = await prober.check(kind, url, client_cert=chain, client_key=key, **more)
    assert result.msg == message(FailureClass.CLIENT_CERT_EXPIRED, HOST)
    assert result.phases.connect_us is None


async def test_a_missing_or_foreign_key_is_a_local_failure(
    prober: Prober, mutual: Mutual, clients: trustme.CA
) -> None:
    chain, _ = pems(clients.issue_cert("leadline.example"))
    _, other = pems(clients.issue_cert("other.example"))
    missing = await prober.check("http", mutual.tls13, client_cert=chain, client_key_ref="key")
    assert missing.unknown_reason is UnknownReason.MISSING_REFERENCE
    foreign = await prober.check("http", mutual.tls13, client_cert=chain, client_key=other)
    assert foreign.unknown_reason is UnknownReason.BAD_SECRET


async def test_another_origin_does_not_see_the_certificate(
    prober: Prober, mutual: Mutual, authority: trustme.CA, clients: trustme.CA
) -> None:
    chain, key = pems(clients.issue_cert("leadline.example"))

    async def leads_on(stream: trio.SocketStream) -> None:
        await stream.receive_some(65_536)
        await stream.send_all(answer(b"", "302 Found", f"location: {mutual.optional}"))

    async with serving(leads_on) as port:
        result = await prober.check(
            "http",
            f"http://{HOST}:{port}/",
            "[BODY] contains verified=NONE",
            client_cert=chain,
            client_key=key,
        )
    assert result.outcome is RunOutcome.UP, result


PAIR = pems(trustme.CA().issue_cert("leadline.example"))
OTHER = pems(trustme.CA().issue_cert("leadline.example"))
LOCKED = (
    load_pem_private_key(PAIR[1].encode(), None)
    .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    .decode()
)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"client_cert": PAIR[0], "client_key": PAIR[1]}, None),
        ({"client_cert": PAIR[0], "client_key_ref": "key"}, None),
        ({"client_cert": PAIR[0]}, "client_key"),
        ({"client_key": PAIR[1]}, "client_cert"),
        ({"client_key_ref": "key"}, "client_cert"),
        ({"client_cert": "no", "client_key": PAIR[1]}, "client_cert"),
        ({"client_cert": PAIR[1], "client_key": PAIR[1]}, "client_cert"),
        ({"client_cert": PAIR[0], "client_key": "no"}, "client_key"),
        ({"client_cert": PAIR[0], "client_key": PAIR[0]}, "client_key"),
        ({"client_cert": PAIR[0], "client_key": OTHER[1]}, "client_key"),
        ({"client_cert": PAIR[0], "client_key": LOCKED}, "client_key"),
        ({"client_cert": PAIR[0], "client_key": PAIR[1], "client_key_ref": "key"}, "client_key"),
    ],
)
@pytest.mark.parametrize("kind", TYPES)
def test_the_settings_belong_together(kind: str, config: dict[str, str], field: str | None) -> None:
    given = {**config, "query": "1"} if kind == "promql" else config
    target = "wss://a.example/" if kind == "websocket" else "https://a.example/"
    found = [fault.field for fault in validate(kind, target, None, given, [])]
    assert found == ([] if field is None else [f"config.{field}"])
    plain = target.replace("s://", "://")
    faults = [fault.field for fault in validate(kind, plain, None, given, [])]
    assert ("config.client_cert" in faults) == ("client_cert" in config or field == "client_cert")


@given(st.text() | st.sampled_from([*PAIR, *OTHER, LOCKED]), st.text() | st.sampled_from(PAIR))
def test_any_text_is_judged_without_an_exception(chain: str, key: str) -> None:
    config = {"client_cert": chain, "client_key": key}
    faults = certificate_faults("https://a.example/", config)
    assert (not faults) == ((chain, key) == PAIR or not (chain or key))
    assert all(chain not in f.message or len(chain) < 30 for f in faults)
    assert isinstance(key_fault(chain, key), str)
