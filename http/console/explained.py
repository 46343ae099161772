"""What a failure's class and a number mean, in a sentence for whoever has to mend it.

It adds nothing to what is stored of a check: a class, a host and a number.
"""

from typing import Final

from ...probes.result import FailureClass, UnknownReason
from ...storage.rules.monitor import MonitorType

FAILURES: Final[dict[str, str]] = {
    FailureClass.DNS_ERROR: "The name has no address, or its name server failed.",
    FailureClass.CONNECT_REFUSED: "The host answered that nothing listens on that port.",
    FailureClass.CONNECT_TIMEOUT: "No answer to the attempt to connect: the host is down, or "
    "something on the way drops it.",
    FailureClass.CONNECT_ERROR: "The connection broke, or could not be made.",
    FailureClass.TLS_ERROR: "No encrypted connection: the certificate is not valid for this host, "
    "not believed, or TLS is not spoken there.",
    FailureClass.TLS_EXPIRING: "The certificate is valid, and ends sooner than it may.",
    FailureClass.TIMEOUT: "The target took the connection and did not finish in time.",
    FailureClass.PROTOCOL_ERROR: "What came is not what this protocol says, or the target refused "
    "what was asked.",
    FailureClass.HTTP_STATUS: "The answer has a status that is not wanted.",
    FailureClass.CONDITION_FAILED: "The target answered, and a condition did not hold.",
    FailureClass.AUTH_FAILED: "The target refused the credentials, or what they may do.",
    FailureClass.TARGET_BLOCKED: "The address may not be reached from here: a metadata address, or "
    "one that deny_networks names.",
    FailureClass.RESPONSE_TOO_LARGE: "The answer is larger than what is read of one.",
    FailureClass.PUSH_MISSED: "Nothing reported in time.",
}
TROUBLES: Final = {
    UnknownReason.RESOLVER_DEAD: "this host's own name server does not answer",
    UnknownReason.PROBER_OFFLINE: "this host seems to be off the network",
    UnknownReason.LOOP_STALLED: "this process stood still meanwhile",
    UnknownReason.NO_ROUTE: "this host has no route for that kind of address",
    UnknownReason.EGRESS_DENIED: "this host's own firewall or sandbox refused it",
    UnknownReason.ICMP_DENIED: "this host lets us send no echo: net.ipv4.ping_group_range would, "
    "or CAP_NET_RAW",
    UnknownReason.LOCAL_RESOURCES: "this host has no descriptors, ports, threads or memory left",
    UnknownReason.NO_TRUST_STORE: "this host holds no certificate authorities",
    UnknownReason.BAD_DEFINITION: "its settings were stored by another version: save it anew",
    UnknownReason.UNKNOWN_KIND: "this version has no check of that kind",
    UnknownReason.MISSING_REFERENCE: "a secret that it refers to is not there",
    UnknownReason.BAD_SECRET: "a secret holds what this protocol cannot carry",
    UnknownReason.DECRYPT_FAILED: "no configured key opens its secrets",
    UnknownReason.CARRIER_TOO_OLD: "the agent is too old for this kind",
    UnknownReason.PROBE_BUG: "the check itself broke: the log names the place",
}
# What the number of a kind's result is called; elsewhere it is the number of an answer.
_NUMBERS: Final[dict[str, str]] = {
    MonitorType.DNS: "rcode",
    MonitorType.GRPC: "gRPC status",
    MonitorType.SSH: "exit status",
    MonitorType.POSTGRES: "error",
    MonitorType.MYSQL: "error",
    MonitorType.RABBITMQ: "reply code",
}


def explain_failure(failure: str) -> str:
    """Empty for what is none of the classes, as another version may have stored it."""
    return FAILURES.get(failure, "")


def explain_trouble(reason: UnknownReason | None) -> str:
    return TROUBLES[reason] if reason is not None else "nobody knows why"


def number_name(kind: str) -> str:
    """`rcode` of DNS; empty where the number is simply that of the answer."""
    return _NUMBERS.get(kind, "")
