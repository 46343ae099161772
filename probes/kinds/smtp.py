"""SMTP probe: the greeting and EHLO of a mail server, with TLS and a login if configured.

It sends no mail, and no password without TLS.
"""

from ..check.check import Check
from ..check.condition_evaluation import ProbeValues
from ..check.credentials import (
    PASSWORD,
    PASSWORD_REF,
    TLS_SKIP_VERIFY,
    CredentialEncoding,
    demanded_secret,
    has_password,
    password_faults,
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
from ..net.sessions.smtp_session import SmtpSession

CONVERSATION_BYTES_MOST = 64 * 1024
# By encryption.
PORTS = {"none": 25, "starttls": 587, "tls": 465}


def _rule(_target: str, config: Config) -> list[SpecFault]:
    faults = password_faults(config)
    if config.get("username") and not has_password(config):
        faults.append(SpecFault("config.password", "or password_ref is required with username"))
    if has_password(config):
        if not config.get("username"):
            faults.append(SpecFault("config.username", "is required with a password"))
        if config.get("encryption") == "none":
            faults.append(SpecFault("config.encryption", "must be starttls or tls with a password"))
    if "\x00" in str(config.get("username", "")):
        faults.append(SpecFault("config.username", "must not contain a NUL"))
    return faults


SPEC = Spec(
    type=MonitorType.SMTP,
    help="Says EHLO to a mail server. Without conditions an accepted EHLO or login is up.",
    target=TargetForm.HOST_PORT,
    default_port=PORTS["none"],
    fields=(
        Field(
            name="encryption",
            type=FieldType.CHOICE,
            help="none (port 25), starttls (587), or tls from the first byte (465).",
            default="none",
            choices=tuple(PORTS),
        ),
        TLS_SKIP_VERIFY,
        username("Logs in. Needs TLS and a password."),
        PASSWORD,
        PASSWORD_REF,
    ),
    placeholders=frozenset({"RESULT", "CONNECTED", "RESPONSE_TIME", "IP", "CERT_EXPIRY"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    encryption, name = check.text("encryption") or "none", check.text("username")
    password = demanded_secret(check, "password", CredentialEncoding.TERMINATED) if name else ""
    host, port = read_host_port(check.target, PORTS[encryption])
    verify = not check.flag("tls_skip_verify")
    connection = await reach.dial(host, port, watch)
    ends_at = None
    try:
        reader = Reader(connection.stream, watch, CONVERSATION_BYTES_MOST)
        if encryption == "tls":
            wrapped = await reach.encrypt(connection, host, watch, verify=verify)
            ends_at = expires_at_us(wrapped)
            reader = Reader(wrapped, watch, CONVERSATION_BYTES_MOST)
        watch.begin(ProbePhase.FIRST_BYTE)
        session = SmtpSession(reader)
        greeting = await session.greet()
        if encryption == "starttls":
            await session.start_tls()
            # Bytes before the handshake would be read as if they had been encrypted.
            if reader.ahead:
                raise TargetFailure(FailureClass.PROTOCOL_ERROR)
            watch.done()
            wrapped = await reach.encrypt(connection, host, watch, verify=verify)
            ends_at = expires_at_us(wrapped)
            session = SmtpSession(Reader(wrapped, watch, CONVERSATION_BYTES_MOST))
            await session.hello()
        if name:
            await session.log_in(name, password)
    finally:
        connection.stream.socket.close()
    facts = ProbeValues(connected=True, ip=connection.address, result=greeting)
    return Observation(facts, cert_ends_at=ends_at)
