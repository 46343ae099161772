"""What a run may say, and nothing more: a bounded class and a host, never what was seen.

`Outcome.UNKNOWN` is what keeps our own trouble from being called the target's: such a result
carries the reason and is never stored as DOWN.
"""

from dataclasses import dataclass
from enum import StrEnum


class FailureClass(StrEnum):
    """Why a target is down, in the words of the wire."""

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
    PUSH_MISSED = "push_missed"
    PROBE_ERROR = "probe_error"


# The classes that a dead network of our own would show for a target that is well.
NETWORK_CLASSES = frozenset(
    {
        FailureClass.DNS_ERROR,
        FailureClass.CONNECT_REFUSED,
        FailureClass.CONNECT_TIMEOUT,
        FailureClass.CONNECT_ERROR,
        FailureClass.TIMEOUT,
    }
)


class RunOutcome(StrEnum):
    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"


class UnknownReason(StrEnum):
    """Why a result could not be had: each is trouble on our side."""

    RESOLVER_DEAD = "resolver_dead"
    PROBER_OFFLINE = "prober_offline"
    LOOP_STALLED = "loop_stalled"
    NO_ROUTE = "no_route"  # this host has no route for the address's family
    EGRESS_DENIED = "egress_denied"  # this host's own firewall or sandbox said no
    ICMP_DENIED = "icmp_denied"  # neither ping_group_range nor CAP_NET_RAW lets us send an echo
    LOCAL_RESOURCES = "local_resources"  # descriptors, ports, memory
    NO_TRUST_STORE = "no_trust_store"  # this host holds no certificate authorities
    BAD_DEFINITION = "bad_definition"  # stored by another version, and not to be read by this one
    UNKNOWN_KIND = "unknown_kind"  # this build has no probe of that type
    MISSING_REFERENCE = "missing_reference"
    BAD_SECRET = "bad_secret"  # a secret that no header can carry
    DECRYPT_FAILED = "decrypt_failed"
    CARRIER_TOO_OLD = "carrier_too_old"
    PROBE_BUG = "probe_bug"
    NO_WORKER = "no_worker"  # nobody of ours probes in that region just now


class ProbePhase(StrEnum):
    DNS = "dns"
    CONNECT = "connect"
    TLS = "tls"
    FIRST_BYTE = "first_byte"


@dataclass(frozen=True, slots=True)
class Phases:
    """How long each part of the last attempt took, in µs, summed over redirects.

    None: that phase was not reached, or is the one named in `unfinished`.
    """

    dns_us: int | None = None
    connect_us: int | None = None
    tls_us: int | None = None
    first_byte_us: int | None = None
    total_us: int = 0
    unfinished: ProbePhase | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The end of one run. `started_at` is µs since the epoch by the clock that was given.

    `latency_ms` is the last attempt's total. `code` is the protocol's number, where it has one.
    `lagged` says that our loop was late meanwhile, so that the latency is partly ours. `bug` names
    the exception and its place when `unknown_reason` is `probe_bug`: for the log, never for the
    store.
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


MESSAGE_LONGEST = 300


def message(failure: FailureClass, place: str) -> str:
    """`http_status api.example.com`: the class, the target's host, and no more; of a scenario
    `condition_failed step 2 status api.example.com`, with the step's number and what failed there.
    """
    return f"{failure} {place}".strip()[:MESSAGE_LONGEST]


def unobtained(now: int, place: str, reason: UnknownReason) -> Result:
    """The end of a run that was not made, through us. `now` is µs since the epoch."""
    return Result(
        started_at=now,
        outcome=RunOutcome.UNKNOWN,
        latency_ms=0,
        code=None,
        msg=message(FailureClass.PROBE_ERROR, place),
        phases=Phases(),
        unknown_reason=reason,
    )
