"""Redis probe: PING, or GET of a key whose value the conditions read, over RESP2.

A few commands on a plain stream cost a seventh of a client library. Commands send their arguments
with lengths, so that no value can become a command.
"""

from ..check.check import Check
from ..check.condition_evaluation import ProbeValues
from ..check.credentials import (
    PASSWORD,
    PASSWORD_REF,
    TLS,
    TLS_SKIP_VERIFY,
    CredentialEncoding,
    has_password,
    password_faults,
    secret,
    username,
)
from ..check.failure import TargetFailure
from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from ..check.target import read_host_port
from ..net.bounded_reader import Reader
from ..net.certificate_expiry import expires_at_us
from ..net.egress import Egress

REPLY_BYTES_MOST = 64 * 1024
DATABASE_MOST = 999
# Prefixes of errors about credentials. Versions before 6 use the generic ERR.
_REFUSALS = (b"NOAUTH", b"WRONGPASS", b"NOPERM", b"DENIED", b"ERR invalid password", b"ERR AUTH ")

Reply = str | None


def _rule(_target: str, config: Config) -> list[SpecFault]:
    if config.get("username") and not has_password(config):
        return [SpecFault("config.password", "or password_ref is required with username")]
    return password_faults(config)


PORT = 6379

SPEC = Spec(
    type=MonitorType.REDIS,
    help="Sends PING, or GET with a key. Without conditions a response is up.",
    target=TargetForm.HOST_PORT,
    default_port=PORT,
    fields=(
        username("For servers with ACLs."),
        PASSWORD,
        PASSWORD_REF,
        TLS,
        TLS_SKIP_VERIFY,
        Field(
            name="database",
            type=FieldType.INTEGER,
            help="The number of the database that is selected; else the server's own, 0.",
            most=DATABASE_MOST,
        ),
        Field(
            name="key",
            type=FieldType.TEXT,
            help="Key whose value is [RESULT]; null if the key does not exist.",
        ),
    ),
    placeholders=frozenset({"RESULT", "CONNECTED", "RESPONSE_TIME", "IP", "CERT_EXPIRY"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    password = secret(check, "password", CredentialEncoding.COUNTED)
    host, port = read_host_port(check.target, PORT)
    connection = await reach.dial(host, port, watch)
    ends_at = None
    try:
        if check.flag("tls"):
            verify = not check.flag("tls_skip_verify")
            wrapped = await reach.encrypt(connection, host, watch, verify=verify)
            ends_at = expires_at_us(wrapped) if check.wants("CERT_EXPIRY") else None
            reader = Reader(wrapped, watch, REPLY_BYTES_MOST)
        else:
            reader = Reader(connection.stream, watch, REPLY_BYTES_MOST)
        watch.begin(ProbePhase.FIRST_BYTE)
        result = await _converse(reader, check, password)
    finally:
        connection.stream.socket.close()
    facts = ProbeValues(connected=True, ip=connection.address, result=result)
    return Observation(facts, cert_ends_at=ends_at)


async def _converse(reader: Reader, check: Check, password: str) -> object:
    """Returns the reply of the last command. Every other command must return OK."""
    if password:
        name = check.text("username")
        await _ask(reader, "AUTH", *([name] if name else []), password, wanted="OK")
    database = check.config.get("database")
    if database:
        await _ask(reader, "SELECT", str(database), wanted="OK")
    key = check.text("key")
    if key:
        return await _ask(reader, "GET", key)
    return await _ask(reader, "PING", wanted="PONG")


async def _ask(reader: Reader, *words: str, wanted: str | None = None) -> Reply:
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        data = word.encode()
        parts += [f"${len(data)}\r\n".encode(), data, b"\r\n"]
    await reader.send(b"".join(parts))
    reply = await _reply(reader)
    if wanted is not None and reply != wanted:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return reply


async def _reply(reader: Reader) -> Reply:
    """Returns one reply of the types that these commands have (RESP2), which excludes arrays."""
    line = await reader.line()
    kind, rest = line[:1], line[1:]
    if kind == b"+":
        return rest.decode("utf-8", "replace")
    if kind == b"-":
        refused = rest.startswith(_REFUSALS)
        raise TargetFailure(FailureClass.AUTH_FAILED if refused else FailureClass.PROTOCOL_ERROR)
    if kind == b"$" and rest == b"-1":
        return None
    if kind != b"$" or not rest.isdigit() or len(rest) > 10:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    value = await reader.exactly(int(rest) + 2)
    if not value.endswith(b"\r\n"):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return value[:-2].decode("utf-8", "replace")
