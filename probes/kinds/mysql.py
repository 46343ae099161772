"""MySQL and MariaDB probe: a client login, and one statement that cannot write.

The statement runs in its own read-only transaction, limited to the time left of the run. At most
one row is requested. No client configuration is read.
"""

import math

import trio

from ..check.check import Check
from ..check.condition_evaluation import MISSING, ProbeValues
from ..check.credentials import (
    PASSWORD,
    PASSWORD_REF,
    TLS,
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
from ..net.sessions.mysql_session import SSL, UNKNOWN_VARIABLE, MysqlSession, Value

CONVERSATION_BYTES_MOST = 256 * 1024
QUERY_LONGEST = 4_096
DEFAULT_QUERY = "SELECT 1"
# Types with numeric text (enum_field_types).
_NUMBERS = frozenset({0, 1, 2, 3, 4, 5, 8, 9, 13, 246})


def _rule(_target: str, config: Config) -> list[SpecFault]:
    return password_faults(config)


PORT = 3306

SPEC = Spec(
    type=MonitorType.MYSQL,
    help="Logs in and runs a read-only query. Without conditions a row is up.",
    target=TargetForm.HOST_PORT,
    default_port=PORT,
    fields=(
        Field(name="username", type=FieldType.TEXT, help="The user to log in as.", required=True),
        PASSWORD,
        PASSWORD_REF,
        Field(name="database", type=FieldType.TEXT, help="The default database of the session."),
        TLS,
        TLS_SKIP_VERIFY,
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
        session, mariadb = await _open(check, reach, connection, host, password, watch)
        value, refused = None, None
        try:
            await _guard(session, mariadb=mariadb)
            value = await session.first_value(check.text("query") or DEFAULT_QUERY)
        except TargetFailure as failed:
            if failed.code is None:
                raise
            # The server returned an error and continues to read.
            refused = failed
        await session.quit()
        if refused is not None:
            raise refused
    finally:
        connection.stream.socket.close()
    return Observation(
        ProbeValues(connected=True, ip=connection.address, result=_result(value)),
        failure=FailureClass.CONDITION_FAILED if value is None else None,
        cert_ends_at=session.cert_ends_at,
    )


async def _open(
    check: Check,
    reach: Egress,
    connection: DialedConnection,
    host: str,
    password: str,
    watch: Stopwatch,
) -> tuple[MysqlSession, bool]:
    """Returns a session that is logged in, and whether the server is MariaDB.

    If TLS is configured, no credentials are sent without it.
    """
    tls = check.flag("tls")
    watch.begin(ProbePhase.FIRST_BYTE)
    reader = Reader(connection.stream, watch, CONVERSATION_BYTES_MOST, greedy=not tls)
    session = MysqlSession(reader)
    greeting = await session.greeting()
    if tls:
        if not greeting.capabilities & SSL:
            raise TargetFailure(FailureClass.TLS_ERROR)
        await session.ask_for_tls()
        verify = not check.flag("tls_skip_verify")
        wrapped = await reach.encrypt(connection, host, watch, verify=verify)
        reader = Reader(wrapped, watch, CONVERSATION_BYTES_MOST, greedy=True)
        ends_at = expires_at_us(wrapped) if check.wants("CERT_EXPIRY") else None
        session = MysqlSession(reader, encrypted=True, number=session.number, cert_ends_at=ends_at)
    await session.log_in(greeting, check.text("username"), check.text("database"), password)
    return session, "MariaDB" in greeting.version


async def _guard(session: MysqlSession, *, mariadb: bool) -> None:
    """Limits the statement of the user: one row, a bounded time, read-only."""
    limit = "SET sql_select_limit = 1"
    left = trio.current_effective_deadline() - trio.current_time()
    milliseconds = 0 if math.isinf(left) else max(1, math.ceil(left * 1_000))
    bound = f"max_execution_time = {milliseconds}"
    if mariadb:
        bound = f"max_statement_time = {milliseconds / 1_000:.3f}"
    try:
        await session.command(f"{limit}, {bound}")
    except TargetFailure as failed:
        if failed.code != UNKNOWN_VARIABLE:
            raise
        # Servers before 5.7, and some compatible ones, have no time limit.
        await session.command(limit)
    # Also for the session, because a statement with an implicit commit leaves the transaction.
    await session.command("SET SESSION TRANSACTION READ ONLY")
    await session.command("START TRANSACTION READ ONLY")


def _result(value: Value | None) -> object:
    """Returns the value in its native type, or MISSING if there is no row."""
    if value is None:
        return MISSING
    if value.text is None or value.type not in _NUMBERS:
        return value.text
    try:
        return read_numeral(value.text)
    except ValueError:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR) from None
