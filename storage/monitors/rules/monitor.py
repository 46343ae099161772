"""Monitor drafts, and the rules of the common fields.

Forms, routes and bundles all call `faults`, which returns every fault with its field.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_args
from uuid import UUID

import msgspec

from ....probes.check.check import DOMAIN_INTERVAL_SECONDS
from ....probes.check.cron_schedule import DISTANCE_DAYS_MOST, cron_fault, cron_schedule
from ....probes.check.monitor_spec import MonitorType as MonitorType  # noqa: PLC0414 - had from here too
from ...core.instant import SECOND, is_timezone
from ...core.naming import text_rule_broken
from ...core.runbook import runbook_fault
from ...core.slug import is_slug
from ...scheduling.rules.run_schedule import ResultMode
from .fields import (
    BOUNDS,
    FIELDS,
    LISTS,
    NUMBERS,
    SCHEDULED,
    TEXTS,
    FieldBounds,
    Method,
    MonitorFields,
)


def manner_of(kind: MonitorType) -> ResultMode:
    """Returns the source of results of a monitor type."""
    match kind:
        case MonitorType.PUSH:
            return ResultMode.PUSH
        case MonitorType.COMPOSITE:
            return ResultMode.COMPOSITE
        case _:
            return ResultMode.PROBE


# Longest distance of the due instants of a probe and of a push. The result of a probe applies for
# three distances, and a repair needs all results of this time: 21 of the 30 days that are kept.
SCHEDULE_DAYS: Final = (7, DISTANCE_DAYS_MOST)
DOMAIN_INTERVAL = FieldBounds(*DOMAIN_INTERVAL_SECONDS, "seconds")
CANARY_TIMEOUT = FieldBounds(1, 3_600, "seconds")
# A transaction that was submitted is never repeated in its run, and a registry limits its clients.
NO_RETRIES = FieldBounds(0, 0)
DEPENDS_ON = FieldBounds(0, 50)
METHODS: Final = get_args(Method)
# Types without a target: they receive results, use children, or have addresses in a document.
TARGETLESS = frozenset(
    {
        MonitorType.PUSH,
        MonitorType.COMPOSITE,
        MonitorType.SYNTHETIC,
        MonitorType.ASYNC_CANARY,
    }
)


class MonitorDraft(MonitorFields, frozen=True, kw_only=True):
    """Monitor as it would be after a write.

    `slug` None derives it from the name. `escalation_policy_id` is a policy of the project; None or
    blank for no policy. Texts are unmodified. A valid `schedule` determines `interval_seconds`.
    """

    type: str
    slug: str | None = None
    depends_on: list[UUID] = []
    config: dict[str, Any] = {}
    escalation_policy_id: str | None = None

    def __post_init__(self) -> None:
        if self.schedule and schedule_fault(self.type, self.schedule, self.timezone) is None:
            shortest = cron_schedule(self.schedule, self.timezone).shortest_us // SECOND
            interval = min(shortest, BOUNDS["interval_seconds"].most)
            msgspec.structs.force_setattr(self, "interval_seconds", interval)

    def __repr__(self) -> str:
        return f"MonitorDraft(type={self.type!r})"


@dataclass(frozen=True, slots=True)
class MonitorFault:
    """Field with the rule that its value breaks."""

    field: str
    rule: str

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}"


def schedule_fault(kind: str, expression: str, timezone: str) -> tuple[str, str] | None:
    """Returns the field and the rule that a cron expression or its time zone breaks."""
    if kind not in SCHEDULED:
        return "schedule", f"is not available for monitors of type {kind}"
    broken = cron_fault(expression, SCHEDULE_DAYS[kind == MonitorType.PUSH])
    if broken is not None:
        return "schedule", broken
    if timezone and not is_timezone(timezone):
        return "timezone", "must be an IANA time zone, such as Europe/Berlin, or empty for UTC"
    return None


def bounds_of(field: str, kind: str) -> FieldBounds:
    """Returns the bounds of a field of a monitor of this type."""
    if kind == MonitorType.ASYNC_CANARY:
        own = {"timeout_seconds": CANARY_TIMEOUT, "retries": NO_RETRIES}
        return own.get(field, BOUNDS[field])
    if kind == MonitorType.DOMAIN:
        own = {"interval_seconds": DOMAIN_INTERVAL, "retries": NO_RETRIES}
        return own.get(field, BOUNDS[field])
    return BOUNDS[field]


def faults(draft: MonitorDraft) -> list[MonitorFault]:
    """Returns all faults of the common fields."""
    return [
        *_slug_faults(draft),
        *_schedule_faults(draft),
        *_number_faults(draft),
        *_text_faults(draft),
        *(fault for name in LISTS for fault in _list_faults(name, getattr(draft, name))),
        *_depends_faults(draft),
    ]


def _slug_faults(draft: MonitorDraft) -> Iterator[MonitorFault]:
    if draft.slug is not None and not is_slug(draft.slug):
        yield MonitorFault("slug", "must match ^[a-z][a-z0-9-]{0,62}$")
    if draft.method not in METHODS:
        yield MonitorFault("method", f"must be one of {', '.join(METHODS)}")


def _schedule_faults(draft: MonitorDraft) -> Iterator[MonitorFault]:
    if not draft.schedule:
        if draft.timezone:
            yield MonitorFault("timezone", "must be empty without a schedule")
        return
    broken = schedule_fault(draft.type, draft.schedule, draft.timezone)
    if broken is not None:
        yield MonitorFault(*broken)
    if draft.type == MonitorType.PUSH and draft.grace_seconds == 0:
        yield MonitorFault("grace_seconds", "must be at least 1 with a schedule")


def _number_faults(draft: MonitorDraft) -> Iterator[MonitorFault]:
    for field in NUMBERS:
        broken = bounds_of(field, draft.type).fault(getattr(draft, field))
        if broken:
            yield MonitorFault(field, broken)
    if draft.timeout_seconds > draft.interval_seconds:
        limit = "the shortest distance of the schedule" if draft.schedule else "interval_seconds"
        yield MonitorFault("timeout_seconds", f"must not be above {limit}")


def _text_faults(draft: MonitorDraft) -> Iterator[MonitorFault]:
    for field in TEXTS:
        bound = BOUNDS[field]
        text: str = getattr(draft, field)
        long = bound.fault(len(text))
        broken = text_rule_broken(text, multiline=field == "description")
        if field == "runbook_url":
            broken = runbook_fault(text)
        if long or broken:
            yield MonitorFault(field, long or broken or "")
        elif bound.least and not text.strip():
            yield MonitorFault(field, "must not be blank")
    if not draft.target.strip() and draft.type not in TARGETLESS:
        yield MonitorFault("target", "is required")


def _list_faults(field: str, items: Sequence[str]) -> Iterator[MonitorFault]:
    how_many, how_long = FIELDS[field].entries, BOUNDS[field]
    assert how_many is not None, "a list has a bounded number of entries"
    many = how_many.fault(len(items))
    if many:
        yield MonitorFault(field, f"{many} entries".replace("must be", "must have"))
    for item in items:
        broken = how_long.fault(len(item)) or text_rule_broken(item)
        if broken or not item.strip():
            yield MonitorFault(field, f"each {broken or 'must not be blank'}")
            return
    if len(set(items)) != len(items):
        yield MonitorFault(field, "must not name anything twice")


def _depends_faults(draft: MonitorDraft) -> Iterator[MonitorFault]:
    if DEPENDS_ON.fault(len(draft.depends_on)):
        yield MonitorFault("depends_on", f"must have at most {DEPENDS_ON.most} entries")
    if len(set(draft.depends_on)) != len(draft.depends_on):
        yield MonitorFault("depends_on", "must not name anything twice")
