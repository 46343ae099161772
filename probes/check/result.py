"""Result of a run. Its message consists of a bounded failure class and a host.

Only `FailedCondition.measured` can contain observed content. `RunOutcome.UNKNOWN` separates local
failures from failures of the target. Such a result carries the reason and is never stored as DOWN.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class FailureClass(StrEnum):
    """Reason why a target is down, with the value of the API."""

    DNS_ERROR = "dns_error"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    CONNECT_ERROR = "connect_error"
    TLS_ERROR = "tls_error"
    TLS_EXPIRING = "tls_expiring"
    TIMEOUT = "timeout"
    PROTOCOL_ERROR = "protocol_error"
    HTTP_STATUS = "http_status"
    CONDITION_FAILED = "condition_failed"
    AUTH_FAILED = "auth_failed"
    TARGET_BLOCKED = "target_blocked"
    RESPONSE_TOO_LARGE = "response_too_large"
    RESPONSE_TOO_EXPENSIVE = "response_too_expensive"
    CLIENT_CERT_EXPIRED = "client_cert_expired"
    TOKEN_ERROR = "token_error"
    PROXY_ERROR = "proxy_error"
    DOMAIN_EXPIRING = "domain_expiring"
    DOMAIN_UNREGISTERED = "domain_unregistered"
    EXPIRY_UNKNOWN = "expiry_unknown"
    PUSH_MISSED = "push_missed"
    PUSH_OVERRUN = "push_overrun"
    PROBE_ERROR = "probe_error"


# Classes that a dead network on our side would also cause for a healthy target.
NETWORK_CLASSES = frozenset(
    {
        FailureClass.DNS_ERROR,
        FailureClass.CONNECT_REFUSED,
        FailureClass.CONNECT_TIMEOUT,
        FailureClass.CONNECT_ERROR,
        FailureClass.TIMEOUT,
        FailureClass.TOKEN_ERROR,
        FailureClass.PROXY_ERROR,
    }
)


class RunOutcome(StrEnum):
    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"


class UnknownReason(StrEnum):
    """Reason why a run has no result. Each is a local failure."""

    RESOLVER_DEAD = "resolver_dead"
    PROBER_OFFLINE = "prober_offline"
    LOOP_STALLED = "loop_stalled"
    NO_ROUTE = "no_route"  # this host has no route for the address's family
    EGRESS_DENIED = "egress_denied"  # refused by this host's firewall or sandbox
    ICMP_DENIED = "icmp_denied"  # neither ping_group_range nor CAP_NET_RAW allows an echo
    LOCAL_RESOURCES = "local_resources"  # descriptors, ports, memory
    NO_TRUST_STORE = "no_trust_store"  # this host has no certificate authorities
    BAD_DEFINITION = "bad_definition"  # stored by another version and unreadable by this one
    UNKNOWN_KIND = "unknown_kind"  # this build has no probe of that type
    MISSING_REFERENCE = "missing_reference"
    BAD_SECRET = "bad_secret"  # a secret that the protocol cannot carry
    DECRYPT_FAILED = "decrypt_failed"
    CARRIER_TOO_OLD = "carrier_too_old"
    RATE_LIMITED = "rate_limited"  # an RDAP server limits its clients
    RDAP_UNAVAILABLE = "rdap_unavailable"  # an RDAP server gives no answer
    PROBE_BUG = "probe_bug"
    NO_WORKER = "no_worker"  # no worker or agent of the region took it


class ProbePhase(StrEnum):
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    FIRST_BYTE = "first_byte"


@dataclass(frozen=True, slots=True)
class Phases:
    """Duration of each phase of the last attempt, in µs, summed over redirects.

    None: the phase was not reached, or it is the one in `unfinished`.
    """

    dns_us: int | None = None
    connect_us: int | None = None
    tls_us: int | None = None
    first_byte_us: int | None = None
    total_us: int = 0
    unfinished: ProbePhase | None = None


@dataclass(frozen=True, slots=True)
class FailedCondition:
    """Condition that was false, with its measured value, see `measured_value`.

    `measured` is None if the value is not shown. It can contain observed content, so it never
    leaves the console and the API of members, and `repr` does not contain it.
    """

    condition: str
    measured: str | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """Returns the condition and its value: `[STATUS] == 200 (503)`."""
        return self.condition if self.measured is None else f"{self.condition} ({self.measured})"


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run. `started_at` is µs since the epoch by the given clock.

    `latency_ms` is the total of the last attempt. `code` is the protocol's number, if any. `lagged`
    means that the event loop stalled during the run, so that the latency is partly ours. `bug`
    names the exception and its location if `unknown_reason` is `probe_bug`. It is logged and never
    stored. `failed` is the first false condition if the failure class is `condition_failed`.
    `certificate` is that of the last TLS handshake with the target, in DER. `cpu_us` is the CPU of
    the run on the event loop and in its threads.
    """

    started_at: int
    outcome: RunOutcome
    latency_ms: int
    code: int | None
    msg: str
    phases: Phases
    unknown_reason: UnknownReason | None = None
    lagged: bool = False
    bug: str | None = None
    failed: FailedCondition | None = None
    certificate: bytes | None = field(default=None, repr=False)
    cpu_us: int = 0


MESSAGE_LONGEST = 300


def message(failure: FailureClass, place: str) -> str:
    """Returns the class and the target's host: `http_status api.example.com`.

    For a scenario it also contains the step's number and the failed assertion: `condition_failed
    step 2 status api.example.com`.
    """
    return f"{failure} {place}".strip()[:MESSAGE_LONGEST]


def unobtained(now: int, place: str, reason: UnknownReason) -> Result:
    """Returns the result of a run that failed locally before it started.

    `now` is µs since the epoch.
    """
    return Result(
        started_at=now,
        outcome=RunOutcome.UNKNOWN,
        latency_ms=0,
        code=None,
        msg=message(FailureClass.PROBE_ERROR, place),
        phases=Phases(),
        unknown_reason=reason,
    )
