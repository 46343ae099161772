"""PostgreSQL probe: a client login, and one statement that cannot write.

The statement runs in its own read-only transaction, limited to the time left of the run. At most
one row is requested. No environment variable and no file of libpq is read.
"""

import math
from dataclasses import replace

import trio

from ..check.check import Check
from ..check.condition_evaluation import MISSING, ProbeValues
from ..check.credentials import (
    PASSWORD,
    PASSWORD_REF,
    TLS_SKIP_VERIFY,
    CredentialEncoding,
    password_faults,
    secret,
)
from ..check.failure import TargetFailure
from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ..check.number_parser import read_numeral
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from ..check.target import read_host_port
from ..net.bounded_reader import Reader
from ..net.certificate_expiry import expires_at_us
from ..net.dial import DialedConnection
from ..net.egress import Egress
from ..net.sessions.postgres_session import PostgresSession, Row
from ..net.sessions.starttls import SSL_REQUEST

CONVERSATION_BYTES_MOST = 256 * 1024
QUERY_LONGEST = 4_096
DEFAULT_QUERY = "SELECT 1"
# Types with numeric text, and boolean (pg_type).
_NUMBERS = frozenset({20, 21, 23, 26, 700, 701, 1_700})
_TRUTH = 16


def _rule(_target: str, config: Config) -> list[SpecFault]:
    faults = password_faults(config)
    if config.get("sslmode") == "verify-full" and config.get("tls_skip_verify"):
        faults.append(SpecFault("config.tls_skip_verify", "contradicts the sslmode verify-full"))
    return faults


PORT = 5432

SPEC = Spec(
    type=MonitorType.POSTGRES,
    help="Logs in and runs a read-only query. Without conditions a row is up.",
    target=TargetForm.HOST_PORT,
    default_port=PORT,
    fields=(
        Field(name="username", type=FieldType.TEXT, help="The role to log in as.", required=True),
        PASSWORD,
        PASSWORD_REF,
        Field(name="database", type=FieldType.TEXT, help="Else the one named like the role."),
        Field(
            name="sslmode",
            type=FieldType.CHOICE,
            help="prefer uses TLS if the server offers it; only verify-full verifies the server.",
            default="prefer",
            choices=("disable", "prefer", "require", "verify-full"),
        ),
        replace(
            TLS_SKIP_VERIFY,
            help="No effect: only sslmode verify-full verifies the server, and it excludes this.",
        ),
        Field(
            name="query",
            type=FieldType.TEXT,
            help="One statement; the first value of its first row is [RESULT].",
            default=DEFAULT_QUERY,
            multiline=True,
            longest=QUERY_LONGEST,
        ),
    ),
    placeholders=frozenset({"RESULT", "CONNECTED", "RESPONSE_TIME", "IP", "CERT_EXPIRY"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    password = secret(check, "password", CredentialEncoding.TERMINATED)
    host, port = read_host_port(check.target, PORT)
    connection = await reach.dial(host, port, watch)
    try:
        session = await _open(check, reach, connection, host, watch)
        await session.log_in(check.text("username"), check.text("database"), password)
        await session.begin(_guard())
        row = await session.first_row(check.text("query") or DEFAULT_QUERY)
        await session.end()
    finally:
        connection.stream.socket.close()
    return Observation(
        ProbeValues(connected=True, ip=connection.address, result=_result(row)),
        failure=FailureClass.CONDITION_FAILED if row is None else None,
        cert_ends_at=session.cert_ends_at,
    )


async def _open(
    check: Check, reach: Egress, connection: DialedConnection, host: str, watch: Stopwatch
) -> PostgresSession:
    """Opens a session without sending credentials.

    It is unencrypted only for the modes disable, and prefer without server support.
    """
    mode = check.text("sslmode")
    stream: trio.SocketStream | trio.SSLStream[trio.SocketStream] = connection.stream
    encrypted, ends_at = False, None
    if mode != "disable":
        reader = Reader(stream, watch, 1)
        watch.begin(ProbePhase.TLS)
        await reader.send(SSL_REQUEST)
        said = await reader.exactly(1)
        if said not in (b"S", b"N"):
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
        if said == b"S":
            verify = mode == "verify-full"
            stream = wrapped = await reach.encrypt(connection, host, watch, verify=verify)
            ends_at = expires_at_us(wrapped) if check.wants("CERT_EXPIRY") else None
            encrypted = True
        elif mode != "prefer":
            raise TargetFailure(FailureClass.TLS_ERROR)
    watch.begin(ProbePhase.FIRST_BYTE)
    reader = Reader(stream, watch, CONVERSATION_BYTES_MOST, greedy=True)
    return PostgresSession(reader, reach, encrypted, ends_at)


def _guard() -> str:
    """Returns the statements that begin a read-only transaction with a timeout.

    The unit of `SET` without a suffix is milliseconds.
    """
    begin = "BEGIN READ ONLY"
    left = trio.current_effective_deadline() - trio.current_time()
    if math.isinf(left):
        return begin
    return f"{begin}; SET LOCAL statement_timeout = {max(1, math.ceil(left * 1_000))}"


def _result(row: Row | None) -> object:
    """Returns the value in its native type, or MISSING if there is no row."""
    if row is None:
        return MISSING
    if row.text is None:
        return None
    if row.oid == _TRUTH:
        return row.text == "t"
    if row.oid not in _NUMBERS:
        return row.text
    try:
        return read_numeral(row.text)
    except ValueError:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR) from None
