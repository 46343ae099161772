"""Messages of the agent protocol: jobs, each with a carrier generation, and results.

A generation states what an agent must understand to run a job. Secrets of a job are only in its
envelope (see `envelope`). Pure. Instants on the wire are RFC 3339 in UTC; those of the server have
milliseconds.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import IntEnum
from typing import Annotated, Any, Final
from uuid import UUID, uuid5

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..check.condition import CONDITION_LONGEST
from ..check.measured_value import MEASURED_LONGEST
from ..check.monitor_spec import MonitorType
from ..check.result import MESSAGE_LONGEST, ProbePhase, RunOutcome, UnknownReason

# Limits of results and of certificates per request, and of jobs per claim.
RESULTS_MOST: Final = 500
CERTIFICATES_MOST: Final = 500
JOBS_MOST: Final = 100
WAIT_SECONDS_MOST: Final = 30
# Header for the capabilities in a claim, and header that identifies one of several agents with the
# same token.
KINDS_HEADER: Final = "x-service-workflow-kinds"
INSTANCE_HEADER: Final = "x-leadline-agent"
# An agent is live for this time after its last request.
LIVE_SECONDS: Final = 45

_WINDOW_JOBS: Final = UUID("6f2b7a54-97c5-4d0e-8d8e-30f6f4b1c6a2")


Moment = Annotated[datetime, Meta(tz=True)]
# As text: an encoded datetime has six decimals, or none for a whole second.
MomentText = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class Generation(IntEnum):
    """Contents of a carrier. Support for a generation includes all earlier ones."""

    PLAIN = 1
    PASSWORDS = 2
    SCENARIOS = 3
    WORKFLOWS = 4


# Capability that an agent must declare for a job of this type, as <kind>@<version>.
CAPABILITY: Final = {
    MonitorType.ASYNC_CANARY.value: "async_transaction@1",
    MonitorType.SMTP.value: "smtp@1",
    MonitorType.DOMAIN.value: "domain@1",
}
# Types with settings that an older agent would ignore, and the capability for a job with each. A
# setting that is present and not blank needs it.
OPTIONAL_TYPES: Final = (
    MonitorType.HTTP.value,
    MonitorType.PROMQL.value,
    MonitorType.WEBSOCKET.value,
)
OPTIONS: Final = {
    "client_cert": "client_cert@1",
    "oauth2_token_url": "oauth2@1",
    "proxy_url": "proxy@1",
}
# Capabilities that server processes declare too. Those of earlier versions have all others.
OF_PROCESSES: Final = frozenset({CAPABILITY[MonitorType.DOMAIN.value], *OPTIONS.values()})
# Capability that an agent must declare to receive tests of checks before they are saved.
CHECK_TEST: Final = "check_test@1"
# Capability that an agent must declare to receive jobs with a `schedule`.
CRON_SCHEDULE: Final = "cron_schedule@1"
# Capability of agents that report certificates, and of servers that take them.
CERTIFICATES: Final = "certificates@1"
_DOCUMENTS: Final = {
    MonitorType.SYNTHETIC.value: Generation.SCENARIOS,
    MonitorType.ASYNC_CANARY.value: Generation.WORKFLOWS,
}


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Encrypted secrets for one token, in base64. `kind` names the carrier generation."""

    kind: str
    salt: str
    nonce: str
    ciphertext: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Run to be performed at `due_at`, or as soon as possible. All config values are strings."""

    job_id: UUID
    monitor_id: UUID
    due_at: MomentText
    type: str
    target: str
    config: dict[str, str] = msgspec.field(default_factory=dict)
    method: str = "GET"
    conditions: list[str] = []
    retries: int = 0
    revision: int
    timeout_seconds: int
    interval_seconds: int
    # Grid of the windows: due instants are `anchor + k * interval_seconds`, unless `schedule` is
    # present.
    anchor: MomentText
    lease_expires_at: MomentText
    carrier: int
    # Present if true: a measured value can contain observed content.
    show_values: bool | UnsetType = UNSET
    envelope: Envelope | UnsetType = UNSET
    # Cron expression of the windows and its IANA time zone, only for agents with CRON_SCHEDULE.
    schedule: str | UnsetType = UNSET
    timezone: str | UnsetType = UNSET


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """Claimed work.

    `tests` are checks to try once before they are saved, each with the id of the test as `job_id`
    and `monitor_id`. It is omitted if it is empty, and for agents without CHECK_TEST.
    """

    jobs: list[Job]
    tests: list[Job] | UnsetType = UNSET


class AgentFailedCondition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Condition of the job that was false, and its measured value, see `FailedCondition`."""

    condition: Annotated[str, Meta(max_length=CONDITION_LONGEST)]
    measured: Annotated[str, Meta(max_length=MEASURED_LONGEST)] | UnsetType = UNSET

    def __repr__(self) -> str:
        return "AgentFailedCondition(…)"


class AgentResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Result of a run. `ts` is the start of its probe in server time.

    An older server refuses `failed_condition` as an unknown field. The agent then repeats the
    request without it.
    """

    job_id: UUID | UnsetType = UNSET
    monitor_id: UUID
    due_at: Moment
    ts: Moment
    up: bool
    latency_ms: Annotated[int, Meta(ge=0, le=86_400_000)]
    code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | UnsetType = UNSET
    msg: Annotated[str, Meta(max_length=300)]
    failed_condition: AgentFailedCondition | UnsetType = UNSET


class Results(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    results: Annotated[list[AgentResult], Meta(max_length=RESULTS_MOST)]


PhaseUs = Annotated[int, Meta(ge=0, le=86_400_000_000)]


class AgentTestPhases(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Duration of each phase in µs, as in `Phases`."""

    dns_us: PhaseUs | UnsetType = UNSET
    connect_us: PhaseUs | UnsetType = UNSET
    tls_us: PhaseUs | UnsetType = UNSET
    first_byte_us: PhaseUs | UnsetType = UNSET
    total_us: PhaseUs = 0
    unfinished: ProbePhase | UnsetType = UNSET


class AgentTestResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Outcome of a test. `reason` is present if the agent could not run it."""

    test_id: UUID
    ts: Moment
    outcome: RunOutcome
    latency_ms: Annotated[int, Meta(ge=0, le=86_400_000)]
    code: Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)] | UnsetType = UNSET
    msg: Annotated[str, Meta(max_length=MESSAGE_LONGEST)]
    reason: UnknownReason | UnsetType = UNSET
    phases: AgentTestPhases = AgentTestPhases()
    failed_condition: AgentFailedCondition | UnsetType = UNSET


class AgentTestResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`accepted` is false if the server no longer waits for this agent's result of the test."""

    accepted: bool


class RefusedResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result that cannot be stored at its instant. `index` is its position in the batch."""

    index: int
    reason: str


class ResultsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a batch: each item is in one of three counts or in `refused`.

    `refused` is omitted if it is empty.
    """

    accepted: int
    duplicate: int
    ignored: int
    refused: list[RefusedResult] | UnsetType = UNSET


class AgentHeartbeat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    workflow_kinds: Annotated[
        list[Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,39}@[0-9]{1,4}$")]],
        Meta(max_length=16),
    ]
    carrier: Annotated[int, Meta(ge=1, le=1_000)]
    version: Annotated[str, Meta(max_length=64)]


class AgentHeartbeatResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`accepts` has the capabilities of the server. One of an earlier version sends none."""

    now: MomentText
    accepts: list[str] = []


class AgentCertificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Certificate that a check of a revision saw, by its end, and when in server time.

    `ends_at` is absent if the check was successful without TLS.
    """

    monitor_id: UUID
    revision: Annotated[int, Meta(ge=0, le=2**31 - 1)]
    ends_at: Moment | UnsetType = UNSET
    seen_at: Moment


class AgentCertificates(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    certificates: Annotated[list[AgentCertificate], Meta(max_length=CERTIFICATES_MOST)]


class AgentCertificatesResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`accepted` excludes certificates of earlier revisions and of unknown monitors."""

    accepted: int


def window_job_id(monitor: UUID, due_us: int, revision: int) -> UUID:
    """Returns the id of a window's job. `due_us` is µs since the epoch.

    Both sides compute it from monitor, instant and revision, so that neither stores a list.
    """
    return uuid5(_WINDOW_JOBS, f"{monitor}/{due_us}/{revision}")


def run_key(monitor: UUID, revision: int, due_us: int) -> str:
    """Returns the run key of a window, for runs that start something at the target.

    It is the same for every run of that window (µs since the epoch) by this definition, on any
    worker or agent.
    """
    return f"{monitor}/{revision}/{due_us}"


def generation_of(type_: str, *, has_secrets: bool) -> Generation:
    """Returns the lowest generation that carries a monitor. A document is secret as a whole."""
    document = _DOCUMENTS.get(type_)
    if document is not None:
        return document
    return Generation.PASSWORDS if has_secrets else Generation.PLAIN


def is_capable(type_: str, kinds: Collection[str]) -> bool:
    """Returns whether an agent with these capabilities can run a job of this type."""
    needed = CAPABILITY.get(type_)
    return needed is None or needed in kinds


def capabilities_for(type_: str, config: Mapping[str, Any]) -> frozenset[str]:
    """Returns the capabilities that a job with this type and config needs."""
    found = {CAPABILITY[type_]} if type_ in CAPABILITY else set()
    if type_ in OPTIONAL_TYPES:
        found |= {token for name, token in OPTIONS.items() if config.get(name)}
    return frozenset(found)


def read_kinds(header: str) -> frozenset[str]:
    """Returns the capabilities in a claim's header, which separates them by commas."""
    return frozenset(part.strip() for part in header.split(",") if part.strip())


def spelt(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns a config whose values are strings."""
    return {key: _spelling(value) for key, value in config.items() if value is not None}


def _spelling(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Iterable):
        return (
            json.dumps(value, separators=(",", ":")) if isinstance(value, Mapping) else _ids(value)
        )
    return str(value)


def _ids(values: Iterable[Any]) -> str:
    return ",".join(str(value) for value in values)
