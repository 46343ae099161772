"""TLS probe: a handshake that verifies the certificate, and its remaining validity.

An untrusted certificate is `tls_error` independent of the conditions, which cannot test trust.
Conditions replace only the limit `warn_days`.
"""

from ..check.check import Check
from ..check.condition_evaluation import ProbeValues
from ..check.failure import TargetFailure
from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from ..check.target import BadTarget, read_host, read_host_port
from ..net.certificate_expiry import expires_at_us
from ..net.egress import Egress
from ..net.sessions.starttls import start_tls

WARN_DAYS = 14
WARN_DAYS_MOST = 999
DAY_US = 86_400_000_000


def _rule(_target: str, config: Config) -> list[SpecFault]:
    try:
        if config.get("server_name"):
            read_host(str(config["server_name"]))
    except BadTarget as bad:
        return [SpecFault("config.server_name", str(bad))]
    return []


# By the protocol of STARTTLS.
PORTS = {"none": 443, "smtp": 25, "imap": 143, "postgres": 5432}

SPEC = Spec(
    type=MonitorType.TLS,
    help="Shakes hands. Without conditions a valid certificate that lasts long enough is up.",
    target=TargetForm.HOST_PORT,
    default_port=PORTS["none"],
    fields=(
        Field(
            name="server_name",
            type=FieldType.TEXT,
            help="The name to ask for and to find in the certificate; else the target's host.",
        ),
        Field(
            name="warn_days",
            type=FieldType.INTEGER,
            help="Days before expiry from which a certificate fails as tls_expiring.",
            default=WARN_DAYS,
            least=0,
            most=WARN_DAYS_MOST,
        ),
        Field(
            name="starttls",
            type=FieldType.CHOICE,
            help="Protocol that starts in plain text and upgrades to TLS.",
            default="none",
            choices=("none", "smtp", "imap", "postgres"),
        ),
    ),
    placeholders=frozenset({"CERT_EXPIRY", "CONNECTED", "RESPONSE_TIME", "IP"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    protocol = check.text("starttls") or "none"
    host, port = read_host_port(check.target, PORTS[protocol])
    server_name = read_host(check.text("server_name") or host)
    connection = await reach.dial(host, port, watch)
    try:
        if protocol != "none":
            watch.begin(ProbePhase.FIRST_BYTE)
            await start_tls(connection.stream, protocol, watch)
            watch.done()
        alpn = ("postgresql",) if protocol == "postgres" else ()
        wrapped = await reach.encrypt(connection, server_name, watch, alpn=alpn)
        ends_at = expires_at_us(wrapped)
    finally:
        connection.stream.socket.close()
    if ends_at is None:
        raise TargetFailure(FailureClass.TLS_ERROR)
    warn_days = check.config.get("warn_days")
    days = warn_days if isinstance(warn_days, int) else WARN_DAYS
    return Observation(
        ProbeValues(connected=True, ip=connection.address),
        cert_ends_at=ends_at,
        cert_left_us_least=days * DAY_US,
    )
