"""What a monitor may be: its types, and one table with the bounds of its fields.

Forms, routes and bundles all ask `faults`, which says every fault at once and names the field.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ....probes.check.check import CONDITIONS_MOST
from ....probes.check.monitor_spec import MonitorType as MonitorType  # noqa: PLC0414 - had from here too
from ...core.naming import text_rule_broken
from ...core.slug import is_slug
from ...scheduling.rules.run_schedule import ResultMode


def manner_of(kind: MonitorType) -> ResultMode:
    """How a monitor of this type comes by its results."""
    match kind:
        case MonitorType.PUSH:
            return ResultMode.PUSH
        case MonitorType.COMPOSITE:
            return ResultMode.COMPOSITE
        case _:
            return ResultMode.PROBE


@dataclass(frozen=True, slots=True)
class FieldBounds:
    """From `least` to `most`, both allowed; `unit` is what a form writes beside it."""

    least: int
    most: int
    unit: str = ""
    or_zero: bool = False

    def fault(self, value: int) -> str | None:
        if self.least <= value <= self.most or (self.or_zero and value == 0):
            return None
        zero = "0 or " if self.or_zero else ""
        unit = f" {self.unit}" if self.unit else ""
        return f"must be {zero}{self.least} to {self.most}{unit}"


NUMBERS = {
    "interval_seconds": FieldBounds(5, 86_400, "seconds"),
    "timeout_seconds": FieldBounds(1, 300, "seconds"),
    "retries": FieldBounds(0, 10),
    "failure_threshold": FieldBounds(1, 100),
    # Clamped to 5 … interval when it acts, so any other length is taken.
    "confirm_interval_seconds": FieldBounds(0, 86_400, "seconds"),
    "renotify_seconds": FieldBounds(60, 86_400, "seconds", or_zero=True),
    "grace_seconds": FieldBounds(0, 86_400, "seconds"),
}
CANARY_TIMEOUT = FieldBounds(1, 3_600, "seconds")
# Lengths in Unicode code points.
TEXTS = {
    "name": FieldBounds(1, 200, "characters"),
    "description": FieldBounds(0, 200, "characters"),
    "target": FieldBounds(0, 2_048, "characters"),
    "region": FieldBounds(1, 63, "characters"),
}
TAGS = FieldBounds(0, 32)
TAG = FieldBounds(1, 64, "characters")
CONDITIONS = FieldBounds(0, CONDITIONS_MOST)
CONDITION = FieldBounds(1, 1_024, "characters")
DEPENDS_ON = FieldBounds(0, 50)
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE")
# These have no target: they are told, made of their children, or name their own in a document.
TARGETLESS = frozenset(
    {
        MonitorType.PUSH,
        MonitorType.COMPOSITE,
        MonitorType.SYNTHETIC,
        MonitorType.ASYNC_CANARY,
    }
)
DEFAULT_TIMEOUT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class MonitorDraftFields:
    """The fields of a monitor that every type has, as it would be after a write."""

    name: str
    type: MonitorType
    target: str = ""
    slug: str | None = None
    description: str = ""
    method: str = "GET"
    interval_seconds: int = 60
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    retries: int = 0
    failure_threshold: int = 1
    confirm_interval_seconds: int = 10
    renotify_seconds: int = 0
    grace_seconds: int = 60
    conditions: Sequence[str] = ()
    tags: Sequence[str] = ()
    depends_on: Sequence[object] = ()
    region: str = "core"


@dataclass(frozen=True, slots=True)
class MonitorFault:
    """A field and the rule that its value breaks."""

    field: str
    rule: str

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}"


def faults(draft: MonitorDraftFields) -> list[MonitorFault]:
    """Everything that is wrong with a monitor's common fields; empty when it may be stored."""
    return [
        *_slug_faults(draft),
        *_number_faults(draft),
        *_text_faults(draft),
        *_list_faults("tags", draft.tags, TAGS, TAG),
        *_list_faults("conditions", draft.conditions, CONDITIONS, CONDITION),
        *_depends_faults(draft),
    ]


def _slug_faults(draft: MonitorDraftFields) -> Iterator[MonitorFault]:
    if draft.slug is not None and not is_slug(draft.slug):
        yield MonitorFault("slug", "must match ^[a-z][a-z0-9-]{0,62}$")
    if draft.method not in METHODS:
        yield MonitorFault("method", f"must be one of {', '.join(METHODS)}")


def _number_faults(draft: MonitorDraftFields) -> Iterator[MonitorFault]:
    for field, bound in NUMBERS.items():
        if field == "timeout_seconds" and draft.type is MonitorType.ASYNC_CANARY:
            bound = CANARY_TIMEOUT  # noqa: PLW2901 - the one type with a bound of its own
        broken = bound.fault(getattr(draft, field))
        if broken:
            yield MonitorFault(field, broken)
    if draft.timeout_seconds > draft.interval_seconds:
        yield MonitorFault("timeout_seconds", "must not be above interval_seconds")


def _text_faults(draft: MonitorDraftFields) -> Iterator[MonitorFault]:
    for field, bound in TEXTS.items():
        text: str = getattr(draft, field)
        long = bound.fault(len(text))
        broken = text_rule_broken(text, multiline=field == "description")
        if long or broken:
            yield MonitorFault(field, long or broken or "")
        elif bound.least and not text.strip():
            yield MonitorFault(field, "must not be blank")
    if not draft.target.strip() and draft.type not in TARGETLESS:
        yield MonitorFault("target", "is required")


def _list_faults(
    field: str, items: Sequence[str], how_many: FieldBounds, how_long: FieldBounds
) -> Iterator[MonitorFault]:
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


def _depends_faults(draft: MonitorDraftFields) -> Iterator[MonitorFault]:
    if DEPENDS_ON.fault(len(draft.depends_on)):
        yield MonitorFault("depends_on", f"must have at most {DEPENDS_ON.most} entries")
    if len(set(draft.depends_on)) != len(draft.depends_on):
        yield MonitorFault("depends_on", "must not name anything twice")
