"""gRPC probe: the standard health service (grpc.health.v1) must return SERVING.

Its two messages have one field each. This module encodes and decodes them.
"""

import trio

from ..check.check import Check
from ..check.client_certificate import (
    CLIENT_CERT,
    CLIENT_KEY_REF,
    is_certificate,
)
from ..check.condition_evaluation import MISSING, ProbeValues
from ..check.credentials import TLS, TLS_SKIP_VERIFY, CredentialEncoding, demanded_secret
from ..check.failure import TargetFailure
from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.private_key import ClientCertificate
from ..check.result import FailureClass
from ..check.target import BadTarget, read_host, read_host_port
from ..net.certificate_expiry import expires_at_us
from ..net.egress import Egress
from ..net.grpc_unary import Stream, UnaryCall, call

PATH = "/grpc.health.v1.Health/Check"
ALPN = ("h2",)
# Timeout sent to a server if the run has no deadline.
TIMEOUT_SECONDS_MOST = 3_600
STATES = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}
SERVING = "SERVING"
# Statuses with a more precise class than condition_failed.
_CLASSES = {
    4: FailureClass.TIMEOUT,  # DEADLINE_EXCEEDED
    7: FailureClass.AUTH_FAILED,  # PERMISSION_DENIED
    12: FailureClass.PROTOCOL_ERROR,  # UNIMPLEMENTED
    16: FailureClass.AUTH_FAILED,  # UNAUTHENTICATED
}


def _rule(_target: str, config: Config) -> list[SpecFault]:
    faults = []
    try:
        if config.get("authority"):
            _server_name(str(config["authority"]))
    except BadTarget as bad:
        faults.append(SpecFault("config.authority", str(bad)))
    certificate, key = config.get("client_cert"), config.get("client_key_ref")
    if certificate and not is_certificate(str(certificate)):
        faults.append(SpecFault("config.client_cert", "is not a certificate in PEM"))
    if bool(certificate) != bool(key):
        missing = "client_key_ref" if certificate else "client_cert"
        faults.append(SpecFault(f"config.{missing}", "is required: a key and its certificate"))
    elif certificate and not config.get("tls"):
        faults.append(SpecFault("config.tls", "is required with client_cert"))
    return faults


PORT = 443

SPEC = Spec(
    type=MonitorType.GRPC,
    help="Asks the health service. Without conditions SERVING is up.",
    target=TargetForm.HOST_PORT,
    default_port=PORT,
    fields=(
        Field(
            name="service",
            type=FieldType.TEXT,
            help="Name of the service to check; default: the whole server.",
        ),
        TLS,
        TLS_SKIP_VERIFY,
        Field(
            name="authority",
            type=FieldType.TEXT,
            help="The name to call the server by and to find in its certificate; else the target.",
        ),
        CLIENT_CERT,
        CLIENT_KEY_REF,
    ),
    placeholders=frozenset({"RESULT", "STATUS", "CONNECTED", "RESPONSE_TIME", "IP", "CERT_EXPIRY"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    host, port = read_host_port(check.target, PORT)
    authority = check.text("authority") or _spelled(host, port)
    identity = None
    if check.text("client_cert"):
        key = demanded_secret(check, "client_key", CredentialEncoding.COUNTED)
        identity = ClientCertificate(check.text("client_cert"), key)
    connection = await reach.dial(host, port, watch)
    stream: Stream = connection.stream
    ends_at = None
    try:
        if check.flag("tls"):
            stream = wrapped = await reach.encrypt(
                connection,
                _server_name(check.text("authority")) if check.text("authority") else host,
                watch,
                verify=not check.flag("tls_skip_verify"),
                alpn=ALPN,
                identity=identity,
            )
            ends_at = expires_at_us(wrapped) if check.wants("CERT_EXPIRY") else None
        request = UnaryCall(
            scheme="https" if check.flag("tls") else "http",
            authority=authority,
            path=PATH,
            message=encoded(check.text("service")),
            user_agent=reach.user_agent,
            timeout_ms=_timeout_ms(),
        )
        status, message = await call(stream, request, watch)
    finally:
        connection.stream.socket.close()
    return _seen(
        check, ProbeValues(connected=True, ip=connection.address), status, message, ends_at
    )


def _seen(
    check: Check, facts: ProbeValues, status: int, message: bytes, ends_at: int | None
) -> Observation:
    failure = None
    facts.status, facts.result = status, MISSING
    if status == 0:
        number = decoded(message)
        facts.result = STATES.get(number, str(number))
        failure = None if facts.result == SERVING else FailureClass.CONDITION_FAILED
    else:
        failure = _CLASSES.get(status, FailureClass.CONDITION_FAILED)
        # A condition on the status may expect a status that is a failure otherwise.
        if not check.wants("STATUS"):
            raise TargetFailure(failure, status)
    return Observation(facts, code=status, failure=failure, cert_ends_at=ends_at)


def _timeout_ms() -> int:
    # The deadline of a cancelled run is minus infinity.
    left = max(0.0, trio.current_effective_deadline() - trio.current_time())
    return max(1, int(1_000 * min(left, TIMEOUT_SECONDS_MOST)))


def _spelled(host: str, port: int) -> str:
    return f"[{host.partition('%')[0]}]:{port}" if ":" in host else f"{host}:{port}"


def _server_name(authority: str) -> str:
    """Returns the host of an authority.

    Raises: `BadTarget` if it is invalid.
    """
    if authority.startswith("[") or authority.count(":") == 1:
        bare = authority.endswith("]")
        return read_host_port(f"{authority}:443" if bare else authority)[0]
    return read_host(authority)


# Messages: HealthCheckRequest {string service = 1}, HealthCheckResponse {Status status = 1}.


def encoded(service: str) -> bytes:
    data = service.encode()
    return b"\x0a" + _varint(len(data)) + data if data else b""


def decoded(message: bytes) -> int:
    """Returns the status of a HealthCheckResponse.

    A missing field is 0, because protobuf omits zeros. Unknown fields are skipped.
    Raises: `TargetFailure` if the message is not protobuf.
    """
    status, at = 0, 0
    while at < len(message):
        key, at = _read_varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(message, at)
            status = value if key >> 3 == 1 else status
        elif kind == 2:
            length, at = _read_varint(message, at)
            at += length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    if at > len(message):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return status


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        number |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return number, at
    raise TargetFailure(FailureClass.PROTOCOL_ERROR)
