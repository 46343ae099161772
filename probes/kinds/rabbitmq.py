"""RabbitMQ probe: a client login, or a request to the management API.

Both can read one queue and count its ready messages. The probe never declares, publishes or
consumes.
"""

from urllib.parse import quote

import msgspec

from ..check.check import Check
from ..check.condition_evaluation import MISSING, ProbeValues
from ..check.credentials import (
    PASSWORD,
    PASSWORD_REF,
    TLS,
    TLS_SKIP_VERIFY,
    CredentialEncoding,
    basic_authorization,
    demanded_secret,
    has_password,
    password_faults,
)
from ..check.failure import TargetFailure
from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from ..check.target import Url, read_host_port
from ..net.bounded_reader import Reader
from ..net.certificate_expiry import expires_at_us
from ..net.egress import Egress
from ..net.http_client import HttpRequest, HttpResponse, fetch
from ..net.sessions.amqp_session import AmqpSession

CONVERSATION_BYTES_MOST = 256 * 1024
# A name is a short string of the protocol, limited in bytes.
NAME_BYTES_MOST = 255
DEFAULT_VHOST = "/"
# States in which a listed queue is not available.
_STANDING = frozenset({"down", "crashed", "stopped", "minority", "terminated"})
_DENIED = frozenset({401, 403})


def _rule(_target: str, config: Config) -> list[SpecFault]:
    faults = password_faults(config)
    if not has_password(config):
        faults.append(SpecFault("config.password", "or password_ref is required"))
    if config.get("mode") == "management" and ":" in str(config.get("username", "")):
        faults.append(SpecFault("config.username", "must not contain a colon in mode management"))
    for name in ("vhost", "queue"):
        if len(str(config.get(name, "")).encode()) > NAME_BYTES_MOST:
            faults.append(SpecFault(f"config.{name}", f"is longer than {NAME_BYTES_MOST} bytes"))
    return faults


# By mode, without and with TLS.
PORTS = {
    ("amqp", False): 5672,
    ("amqp", True): 5671,
    ("management", False): 15672,
    ("management", True): 15671,
}

SPEC = Spec(
    type=MonitorType.RABBITMQ,
    help="Logs in. Without conditions a login is up; with a queue, the queue must exist.",
    target=TargetForm.HOST_PORT,
    default_port=PORTS["amqp", False],
    fields=(
        Field(
            name="mode",
            type=FieldType.CHOICE,
            help="amqp uses the client protocol (5672), management the HTTP API (15672).",
            default="amqp",
            choices=("amqp", "management"),
        ),
        Field(name="username", type=FieldType.TEXT, help="The user to log in as.", required=True),
        PASSWORD,
        PASSWORD_REF,
        Field(
            name="vhost",
            type=FieldType.TEXT,
            help="The virtual host that is opened.",
            default=DEFAULT_VHOST,
            longest=NAME_BYTES_MOST,
        ),
        Field(
            name="queue",
            type=FieldType.TEXT,
            help="Its ready messages are [RESULT]; it is not declared.",
            longest=NAME_BYTES_MOST,
        ),
        TLS,
        TLS_SKIP_VERIFY,
    ),
    placeholders=frozenset({"RESULT", "CONNECTED", "RESPONSE_TIME", "IP", "CERT_EXPIRY"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    if check.text("mode") == "management":
        return await _by_management(check, reach, watch)
    return await _by_amqp(check, reach, watch)


async def _by_amqp(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    password = demanded_secret(check, "password", CredentialEncoding.TERMINATED)
    host, port = read_host_port(check.target, PORTS["amqp", bool(check.config.get("tls"))])
    connection = await reach.dial(host, port, watch)
    ends_at = None
    try:
        reader = Reader(connection.stream, watch, CONVERSATION_BYTES_MOST, greedy=True)
        if check.flag("tls"):
            verify = not check.flag("tls_skip_verify")
            wrapped = await reach.encrypt(connection, host, watch, verify=verify)
            ends_at = expires_at_us(wrapped) if check.wants("CERT_EXPIRY") else None
            reader = Reader(wrapped, watch, CONVERSATION_BYTES_MOST, greedy=True)
        watch.begin(ProbePhase.FIRST_BYTE)
        session = AmqpSession(reader)
        vhost = check.text("vhost") or DEFAULT_VHOST
        await session.log_in(check.text("username"), password, vhost)
        queue = check.text("queue")
        result: object = await session.messages(queue) if queue else MISSING
        await session.close()
    finally:
        connection.stream.socket.close()
    facts = ProbeValues(connected=True, ip=connection.address, result=result)
    return Observation(facts, cert_ends_at=ends_at)


async def _by_management(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    host, port = read_host_port(check.target, PORTS["management", bool(check.config.get("tls"))])
    request = HttpRequest(
        method="GET",
        url=Url("https" if check.flag("tls") else "http", host, port, _path(check)),
        headers=[("authorization", basic_authorization(check))],
        secrets=frozenset({"authorization"}),
        redirects=0,
        verify=not check.flag("tls_skip_verify"),
        cert_expiry=check.wants("CERT_EXPIRY"),
    )
    response = await fetch(reach, request, watch)
    told = _read(response)
    stands = told.state in _STANDING
    counts = told if check.text("queue") else told.queue_totals
    ready = counts.messages_ready if isinstance(counts, _Counts) and not stands else None
    return Observation(
        ProbeValues(
            connected=True,
            ip=response.address,
            # Statistics lag by some seconds: a new queue has no count yet.
            result=MISSING if ready is None else ready,
        ),
        code=response.status,
        failure=FailureClass.CONDITION_FAILED if stands else None,
        cert_ends_at=response.cert_ends_at,
    )


def _path(check: Check) -> str:
    queue = check.text("queue")
    if not queue:
        return "/api/overview"
    vhost = check.text("vhost") or DEFAULT_VHOST
    return f"/api/queues/{quote(vhost, safe='')}/{quote(queue, safe='')}"


class _Counts(msgspec.Struct):
    messages_ready: int | None = None


class _Told(_Counts):
    """Decoded fields of a queue or of the overview."""

    state: str | None = None
    # An empty list if there are no queues to count.
    queue_totals: _Counts | list[None] | None = None


def _read(response: HttpResponse) -> _Told:
    if response.status in _DENIED:
        raise TargetFailure(FailureClass.AUTH_FAILED, response.status)
    if not 200 <= response.status <= 299:
        raise TargetFailure(FailureClass.HTTP_STATUS, response.status)
    if not response.whole:
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE, response.status)
    try:
        return msgspec.json.decode(response.body, type=_Told)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR, response.status) from error
