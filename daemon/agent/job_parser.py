"""Parser of jobs. A job is accepted as a whole, or refused with a reason and never run.

Pure. The envelope is decrypted with the job's raw JSON, because it also binds fields that this
version does not know.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID
from zoneinfo import available_timezones

import msgspec
from msgspec import UNSET

from ...probes.check.check import CANARY_TIMEOUT_SECONDS_MOST, INTERVAL_SECONDS, Check, make_check
from ...probes.check.condition import BadCondition
from ...probes.check.cron_schedule import CronSchedule, cron_fault, cron_schedule
from ...probes.jobs.agent_protocol import Generation, Job, run_key, window_job_id
from ...probes.jobs.envelope import BadEnvelope, Contents, open_envelope
from .offline_schedule import KnownCheck

SECOND: Final = 1_000_000
# Highest carrier generation of this version.
CARRIER: Final = max(Generation)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class RefusedJob(Exception):
    """Raised for a refused job.

    `reason` is a short code for counting. The text has details, and contains no secret.
    """

    def __init__(self, reason: str, said: str) -> None:
        super().__init__(said)
        self.reason = reason


@dataclass(order=True, frozen=True, slots=True)
class AgentJob:
    """Run to be performed, ordered by its due instant. Instants are µs in server time."""

    due: int
    number: int
    job_id: UUID = field(compare=False)
    definition: KnownCheck = field(compare=False)
    # The run must begin before this instant.
    begin_until: int = field(compare=False)
    # The server waits for the result until this instant. 0 if it did not assign the job.
    lease_until: int = field(compare=False)
    is_window: bool = field(compare=False)


def micros(moment: datetime) -> int:
    """Returns µs since the epoch, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def micros_of(text: str) -> int:
    """Returns µs since the epoch of an RFC 3339 text.

    Raises: ValueError for another text, or one without a time zone.
    """
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("an instant has no time zone")
    return micros(found)


def moment(instant: int) -> datetime:
    """Returns the datetime in UTC, exactly."""
    return _EPOCH + instant * _MICROSECOND


@dataclass(frozen=True, slots=True)
class AgentTest:
    """Check to try once before it is saved. Nobody waits for the result after `until`, in µs."""

    test_id: UUID
    check: Check
    until: int


def read_test(raw: Mapping[str, Any], token: str) -> AgentTest:
    """Parses a test. Raises: `RefusedJob` if it cannot or must not be run."""
    job = _read_known(raw)
    check = _check(job, _contents(raw, job, token))
    return AgentTest(job.job_id, check, micros_of(job.lease_expires_at))


def read_task(raw: Mapping[str, Any], token: str, number: int) -> AgentJob:
    """Parses a claimed job. `number` orders jobs with the same due instant.

    Raises: `RefusedJob` if it cannot or must not be run.
    """
    job = _read_known(raw)
    definition = KnownCheck(
        monitor=job.monitor_id,
        revision=job.revision,
        anchor=micros_of(job.anchor),
        interval=job.interval_seconds * SECOND,
        timeout=job.timeout_seconds * SECOND,
        check=_check(job, _contents(raw, job, token)),
        schedule=_schedule(job),
    )
    due, lease_until = micros_of(job.due_at), micros_of(job.lease_expires_at)
    is_window = job.job_id == window_job_id(job.monitor_id, due, job.revision)
    begin_until = lease_until
    if is_window:
        begin_until = min(lease_until, definition.claimable_until(due))
    return AgentJob(due, number, job.job_id, definition, begin_until, lease_until, is_window)


def own_task(definition: KnownCheck, due: int, number: int) -> AgentJob:
    """Returns the job of a window that the agent runs while offline, with the window's job id."""
    return AgentJob(
        due,
        number,
        window_job_id(definition.monitor, due, definition.revision),
        definition,
        begin_until=definition.claimable_until(due),
        lease_until=0,
        is_window=True,
    )


def _read_known(raw: Mapping[str, Any]) -> Job:
    job = _read(raw)
    if not 1 <= job.carrier <= CARRIER:
        raise RefusedJob("carrier_unknown", f"carrier {job.carrier} is not known to this version")
    return job


def _read(raw: Mapping[str, Any]) -> Job:
    try:
        job = msgspec.convert(raw, Job)
        for instant in (job.due_at, job.anchor, job.lease_expires_at):
            micros_of(instant)
    except (msgspec.ValidationError, ValueError) as error:
        raise RefusedJob("unreadable", str(error)[:200]) from None
    least, most = INTERVAL_SECONDS
    if not least <= job.interval_seconds <= most:
        raise RefusedJob("unreadable", "its interval is out of bounds")
    if not 1 <= job.timeout_seconds <= CANARY_TIMEOUT_SECONDS_MOST:
        raise RefusedJob("unreadable", "its timeout is out of bounds")
    return job


def _schedule(job: Job) -> CronSchedule | None:
    if job.schedule is UNSET:
        return None
    zone = job.timezone or "UTC"
    if cron_fault(job.schedule) is not None or zone not in available_timezones():
        raise RefusedJob("unreadable", "its schedule cannot be read")
    return cron_schedule(job.schedule, zone)


def _contents(raw: Mapping[str, Any], job: Job, token: str) -> Contents:
    if job.carrier == Generation.PLAIN and not raw.get("envelope"):
        return Contents()
    try:
        return open_envelope(raw, token)
    except BadEnvelope as error:
        raise RefusedJob("envelope", f"its envelope {error}") from None


def _check(job: Job, contents: Contents) -> Check:
    try:
        check = make_check(
            job.type,
            job.target,
            job.method,
            {**job.config, **contents.config},
            job.conditions,
            retries=job.retries,
            timeout_seconds=job.timeout_seconds,
            interval_seconds=job.interval_seconds,
            secrets=contents.secrets,
            show_values=job.show_values is True,
        )
    except BadCondition:
        raise RefusedJob("bad_definition", "a condition cannot be read") from None
    return replace(check, run_key=run_key(job.monitor_id, job.revision, micros_of(job.due_at)))
