"""Explanations of failure classes and result codes, for users who fix the fault.

They depend only on the stored class, host and code of a check.
"""

from typing import Final

from ...probes.check.result import FailureClass, UnknownReason
from ...storage.monitors.rules.monitor import MonitorType
from ...storage.scheduling.rules.expected_run import WithheldReason

FAILURES: Final[dict[str, str]] = {
    FailureClass.DNS_ERROR: "The name has no address, or its name server failed.",
    FailureClass.CONNECT_REFUSED: "The host refused the connection: the port is closed.",
    FailureClass.CONNECT_TIMEOUT: "The connection attempt timed out: the host is down, or "
    "a firewall drops the packets.",
    FailureClass.CONNECT_ERROR: "The connection failed or was interrupted.",
    FailureClass.TLS_ERROR: "No encrypted connection: the certificate is not valid for this host, "
    "not trusted, or the port does not use TLS.",
    FailureClass.TLS_EXPIRING: "The certificate is valid but expires too soon.",
    FailureClass.TIMEOUT: "The target accepted the connection but did not respond in time.",
    FailureClass.PROTOCOL_ERROR: "Unexpected protocol response.",
    FailureClass.HTTP_STATUS: "Unexpected HTTP status.",
    FailureClass.CONDITION_FAILED: "The target responded, but a condition is false.",
    FailureClass.AUTH_FAILED: "The target rejected the credentials or their permissions.",
    FailureClass.TARGET_BLOCKED: "The egress policy blocks the address: a metadata address or"
    " an entry of deny_networks.",
    FailureClass.RESPONSE_TOO_LARGE: "The response exceeds the size limit.",
    FailureClass.RESPONSE_TOO_EXPENSIVE: "Reading the response took more CPU time than a check may"
    " use: it consists of too many small parts.",
    FailureClass.CLIENT_CERT_EXPIRED: "The client certificate of the monitor has expired. The"
    " target was not contacted.",
    FailureClass.TOKEN_ERROR: "The token endpoint of the monitor gave no access token. The target"
    " was not contacted.",
    FailureClass.PROXY_ERROR: "The proxy of the monitor opened no connection to the target.",
    FailureClass.DOMAIN_EXPIRING: "The domain expires soon, or has expired.",
    FailureClass.DOMAIN_UNREGISTERED: "The registry has no such domain.",
    FailureClass.EXPIRY_UNKNOWN: "The registry does not state when the domain expires. Add a"
    " condition on other facts.",
    FailureClass.PUSH_MISSED: "No heartbeat arrived in time.",
    FailureClass.PUSH_OVERRUN: "A run of the job took longer than its limit.",
}
# Reasons for which a canary was not run. Each counts as a failure, although the target was not
# contacted.
REFUSALS: Final[dict[str, str]] = {
    WithheldReason.REGION_SATURATED: "All canary slots of the region were in use. Spread the"
    " canaries out or raise canary.concurrency_per_region.",
    WithheldReason.ALREADY_IN_FLIGHT: "The previous run was still in progress. Increase the"
    " interval or lower the timeout.",
    WithheldReason.NO_CAPABLE_RUNNER: "The region has no worker and no live agent that runs"
    " canaries.",
    WithheldReason.CAPABILITY_MISMATCH: "The agents of the region run another workflow"
    " version than the server requires.",
}
TROUBLES: Final = {
    UnknownReason.RESOLVER_DEAD: "the name server of this host does not respond",
    UnknownReason.PROBER_OFFLINE: "this host seems to be off the network",
    UnknownReason.LOOP_STALLED: "the event loop stalled",
    UnknownReason.NO_ROUTE: "this host has no route to this address family",
    UnknownReason.EGRESS_DENIED: "the firewall or sandbox of this host blocked the connection",
    UnknownReason.ICMP_DENIED: "this host does not permit ICMP echo; set"
    " net.ipv4.ping_group_range or CAP_NET_RAW",
    UnknownReason.LOCAL_RESOURCES: "this host is out of descriptors, ports, threads or memory",
    UnknownReason.NO_TRUST_STORE: "this host has no certificate authorities installed",
    UnknownReason.BAD_DEFINITION: "saved by another version; save it again",
    UnknownReason.NO_WORKER: "no worker or agent of the region took it",
    UnknownReason.UNKNOWN_KIND: "this version does not support this monitor type",
    UnknownReason.MISSING_REFERENCE: "a referenced secret does not exist",
    UnknownReason.BAD_SECRET: "a secret contains characters that the protocol does not allow",
    UnknownReason.DECRYPT_FAILED: "its secrets cannot be decrypted with the configured keys",
    UnknownReason.CARRIER_TOO_OLD: "the agent is too old for this monitor type",
    UnknownReason.RATE_LIMITED: "the requests to the RDAP server are limited",
    UnknownReason.RDAP_UNAVAILABLE: "the RDAP server gives no answer",
    UnknownReason.PROBE_BUG: "internal error in the check; see the log",
}
# Name of the result code by type. Other types use "code".
_NUMBERS: Final[dict[str, str]] = {
    MonitorType.DNS: "rcode",
    MonitorType.GRPC: "gRPC status",
    MonitorType.SSH: "exit status",
    MonitorType.PUSH: "exit status",
    MonitorType.POSTGRES: "error",
    MonitorType.MYSQL: "error",
    MonitorType.RABBITMQ: "reply code",
}


def explain_failure(failure: str) -> str:
    """Returns the explanation, empty for an unknown class of another version."""
    return FAILURES.get(failure) or REFUSALS.get(failure, "")


def failure_sentence(message: str | None, code: int | None = None, kind: str = "") -> str:
    """Returns what failed, the result code and the host, without a period and a remedy.

    `message` is that of the result: the class, then the host if there is one. `kind` is the type of
    the monitor, which names the code.
    """
    failure, _, host = (message or "").partition(" ")
    if is_reported(message or "", kind):
        failure, host = message or "", ""
    said = (
        explain_failure(failure).partition(". ")[0].rstrip(".")
        or (failure if " " in failure else failure.replace("_", " "))
        or "failed"
    )
    if failure == FailureClass.HTTP_STATUS and code is not None:
        said += f" {code}"
    elif code is not None and (name := number_name(kind)):
        said += f" ({name} {code})"
    return f"{said} ({host})" if host else said


def is_reported(message: str, kind: str) -> bool:
    """Returns whether the message is a text of the job that reports to a push monitor."""
    return kind == MonitorType.PUSH and message not in FAILURES


def is_refusal(failure: str) -> bool:
    """Returns whether the dispatch was refused, so that no run took place."""
    return failure in REFUSALS


def explain_trouble(reason: UnknownReason | None) -> str:
    return TROUBLES[reason] if reason is not None else "unknown reason"


def number_name(kind: str) -> str:
    """Returns the name of the code, such as `rcode` for DNS, or an empty string."""
    return _NUMBERS.get(kind, "")


REASONS: Final = {
    "no_owning_service": "paging is not owned by the service",
    "no_governing_revision": "no revision in force",
    "policy_pages_nothing": "no paging state or route set",
    "state_not_pageable": "current state does not page",
    "never_evaluated": "never evaluated",
    "generation_changed": "not evaluated since the alerting was edited",
    "revision_changed": "not evaluated since the declaration was edited",
    "evaluation_error": "last evaluation failed",
    "stale_lease": "evaluation is overdue",
    "no_enabled_target": "all channels of the paging route are disabled",
    "held": "page suppressed",
    "rule_unevaluated": "a burn rule has not enough data",
    "unroutable": "paging route has no enabled channel",
    "onset_pending": "page pending",
    "onset_undelivered": "page not delivered",
    "latch_inconsistent": "stored alert state is inconsistent",
}


def reason_words(reason: str | None) -> str:
    if reason is None:
        return "unknown reason"
    return REASONS.get(reason, reason.replace("_", " "))
