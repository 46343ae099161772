"""Explanations of failure classes and result codes, for users who fix the fault.

They depend only on the stored class, host and code of a check.
"""

from typing import Final

from ...probes.check.result import FailureClass, UnknownReason
from ...storage.monitors.rules.monitor import MonitorType
from ...storage.scheduling.rules.expected_run import WithheldReason

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
# Reasons for which a canary was not run. Each counts as a failure, although the target was not
# contacted.
REFUSALS: Final[dict[str, str]] = {
    WithheldReason.REGION_SATURATED: "Every place for canaries in its region was taken until its "
    "time was over: spread them out, or raise canary.concurrency_per_region.",
    WithheldReason.ALREADY_IN_FLIGHT: "The run before it was still under way: a transaction takes "
    "longer than the interval leaves it.",
    WithheldReason.NO_CAPABLE_RUNNER: "Nobody in its region was there to run it: no worker probes "
    "there, and no agent that is live runs canaries.",
    WithheldReason.CAPABILITY_MISMATCH: "In its region there are only agents that run "
    "workflows of another version than the server asks for.",
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
    UnknownReason.NO_WORKER: "no worker of that region answers just now",
    UnknownReason.UNKNOWN_KIND: "this version has no check of that kind",
    UnknownReason.MISSING_REFERENCE: "a secret that it refers to is not there",
    UnknownReason.BAD_SECRET: "a secret holds what this protocol cannot carry",
    UnknownReason.DECRYPT_FAILED: "no configured key opens its secrets",
    UnknownReason.CARRIER_TOO_OLD: "the agent is too old for this kind",
    UnknownReason.PROBE_BUG: "the check itself broke: the log names the place",
}
# Name of the result code by type. Other types use "code".
_NUMBERS: Final[dict[str, str]] = {
    MonitorType.DNS: "rcode",
    MonitorType.GRPC: "gRPC status",
    MonitorType.SSH: "exit status",
    MonitorType.POSTGRES: "error",
    MonitorType.MYSQL: "error",
    MonitorType.RABBITMQ: "reply code",
}


def explain_failure(failure: str) -> str:
    """Returns the explanation, empty for an unknown class of another version."""
    return FAILURES.get(failure) or REFUSALS.get(failure, "")


def is_refusal(failure: str) -> bool:
    """Returns whether the dispatch was refused, so that no run took place."""
    return failure in REFUSALS


def explain_trouble(reason: UnknownReason | None) -> str:
    return TROUBLES[reason] if reason is not None else "nobody knows why"


def number_name(kind: str) -> str:
    """Returns the name of the code, such as `rcode` for DNS, or an empty string."""
    return _NUMBERS.get(kind, "")


REASONS: Final = {
    "no_owning_service": "it does not own their paging",
    "no_governing_revision": "nothing is declared that governs now",
    "policy_pages_nothing": "it is set to tell of nothing, or names nobody to tell",
    "state_not_pageable": "what it is now is none of what it pages on",
    "never_evaluated": "it was never looked at yet",
    "generation_changed": "its alerting was edited, and it was not looked at since",
    "revision_changed": "its declaration was edited, and it was not looked at since",
    "evaluation_error": "the last look at it failed",
    "stale_lease": "nobody has looked at it lately",
    "no_enabled_target": "every channel that it would page is turned off",
    "held": "it holds its page back",
    "rule_unevaluated": "a burn rule cannot be decided",
    "unroutable": "its ladder or schedule leads to nobody",
    "onset_pending": "it has seen the trouble and not told of it yet",
    "onset_undelivered": "its page did not arrive",
    "latch_inconsistent": "what it remembers of the trouble does not fit together",
}


def reason_words(reason: str | None) -> str:
    if reason is None:
        return "nobody knows why"
    return REASONS.get(reason, reason.replace("_", " "))
