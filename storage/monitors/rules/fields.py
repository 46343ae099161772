"""Settings of monitors outside `config`: type, default, bounds and texts.

This is the only list of them. The bodies of the API, the entry of a bundle and its JSON Schema are
derived from it. So are the row of a monitor with its SQL, the form of the console, the table of
settings, and the table in docs/reference/checks.md. A new setting needs a line here, a column in a
migration, and the rule that uses it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_origin, get_type_hints

from msgspec import NODEFAULT, UNSET, Struct, UnsetType, defstruct, structs

from ....probes.check.check import CONDITIONS_MOST
from ....probes.check.condition import CONDITION_LONGEST
from ....probes.check.cron_schedule import EXPRESSION_LONGEST
from ....probes.check.monitor_spec import CERTIFIED, MonitorType
from ...core.runbook import RUNBOOK_LONGEST

Method = Literal["GET", "POST", "HEAD", "PUT", "DELETE"]
Group = Literal["about", "schedule", "conditions", "alerts", "more"]

EVERY_TYPE: Final = frozenset(MonitorType)
PROBED: Final = EVERY_TYPE - {MonitorType.PUSH, MonitorType.COMPOSITE}
# A composite is evaluated when a child changes; its runs only repeat this. The refusals of canaries
# do not consider which agents know schedules.
SCHEDULED: Final = EVERY_TYPE - {MonitorType.COMPOSITE, MonitorType.ASYNC_CANARY}
# Failures of a canary are not confirmed, because each run is a transaction at the service. A
# registry limits its clients.
CONFIRMED: Final = PROBED - {MonitorType.ASYNC_CANARY, MonitorType.DOMAIN}


@dataclass(frozen=True, slots=True)
class FieldBounds:
    """Inclusive bounds `least` to `most`. `unit` is part of the messages."""

    least: int
    most: int
    unit: str = ""
    or_zero: bool = False

    def fault(self, value: int) -> str | None:
        if self.least <= value <= self.most or (self.or_zero and value == 0):
            return None
        if self.least == self.most:
            return f"must be {self.least}"
        zero = "0 or " if self.or_zero else ""
        unit = f" {self.unit}" if self.unit else ""
        return f"must be {zero}{self.least} to {self.most}{unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorField:
    """Metadata of a field.

    `bounds` are those of a number, of the length of a text, or of each text of a list, whose length
    `entries` bounds. `is_default_of_installation` states that an administrator can set the default
    of new monitors. The console shows the field as `label`, in the part `group` of the form.
    """

    bounds: FieldBounds | None = None
    entries: FieldBounds | None = None
    types: frozenset[MonitorType] = EVERY_TYPE
    is_default_of_installation: bool = False
    label: str = ""
    hint: str = ""
    group: Group = "about"
    # Sentence for the reference documentation.
    meaning: str = ""


class MonitorFields(Struct, frozen=True, kw_only=True):
    name: Annotated[
        str, MonitorField(bounds=FieldBounds(1, 200, "characters"), meaning="display name")
    ]
    description: Annotated[
        str,
        MonitorField(bounds=FieldBounds(0, 200, "characters"), meaning="a remark, for the console"),
    ] = ""
    runbook_url: Annotated[
        str,
        MonitorField(
            bounds=FieldBounds(0, RUNBOOK_LONGEST, "characters"),
            label="Runbook",
            hint="URL of the instructions. Every page and incident names it.",
            meaning="http or https URL of the instructions for a failure; every page and incident "
            "of the monitor names it",
        ),
    ] = ""
    target: Annotated[
        str,
        MonitorField(
            bounds=FieldBounds(0, 2_048, "characters"),
            meaning="address of the check; the format depends on the type",
        ),
    ] = ""
    method: Annotated[Method, MonitorField(meaning="HTTP method")] = "GET"
    interval_seconds: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(5, 86_400, "seconds"),
            is_default_of_installation=True,
            label="Interval",
            group="schedule",
            meaning="time between two due runs; with a `schedule`, Leadline sets it to the "
            "shortest distance of its due runs, at most 86 400",
        ),
    ] = 60
    grace_seconds: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(0, 86_400, "seconds"),
            types=frozenset({MonitorType.PUSH}),
            label="Grace",
            hint="Allowed delay of a report.",
            group="schedule",
            meaning="push: allowed delay of a heartbeat after its interval, or after a due instant "
            "of its `schedule`, where it is at least 1",
        ),
    ] = 60
    max_run_seconds: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(1, 604_800, "seconds", or_zero=True),
            types=frozenset({MonitorType.PUSH}),
            label="Longest run",
            hint="From a /start to its result. 0 is no limit.",
            group="schedule",
            meaning="push: longest time from a `/start` to its result; a longer run is a failure "
            "(`push_overrun`); 0 is no limit",
        ),
    ] = 0
    timeout_seconds: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(1, 300, "seconds"),
            types=PROBED,
            is_default_of_installation=True,
            label="Timeout",
            hint="At most the interval.",
            group="schedule",
            meaning="limit of a run including retries; at most the interval "
            "(async_canary: up to 3 600)",
        ),
    ] = 10
    failure_threshold: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(1, 100),
            is_default_of_installation=True,
            label="Failures before down",
            hint="Consecutive failures.",
            group="schedule",
            meaning="consecutive failures that make it DOWN",
        ),
    ] = 1
    recovery_threshold: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(1, 100),
            label="Successes before up",
            hint="Consecutive successes after an outage.",
            group="schedule",
            meaning="consecutive successes that make a DOWN monitor UP",
        ),
    ] = 1
    # Limited to 5 s … interval when used, so other values are accepted.
    confirm_interval_seconds: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(0, 86_400, "seconds"),
            types=CONFIRMED,
            label="Recheck delay",
            hint="Rechecks a first failure after this delay. 0 disables.",
            group="schedule",
            meaning="the next run after a failure below the threshold comes this soon, at least "
            "5 s and at most the interval; 0 is off",
        ),
    ] = 10
    retries: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(0, 10),
            types=PROBED,
            is_default_of_installation=True,
            label="Retries",
            hint="Immediate retries within one check; only the last result counts.",
            group="schedule",
            meaning="further attempts inside one run; the last one counts",
        ),
    ] = 0
    schedule: Annotated[
        str,
        MonitorField(
            bounds=FieldBounds(0, EXPRESSION_LONGEST, "characters"),
            types=SCHEDULED,
            label="Schedule",
            hint="Cron expression in place of the interval, such as 30 2 * * 1-5.",
            group="schedule",
            meaning="cron expression of five fields, in place of the interval; empty is none",
        ),
    ] = ""
    timezone: Annotated[
        str,
        MonitorField(
            bounds=FieldBounds(0, 64, "characters"),
            types=SCHEDULED,
            label="Time zone",
            hint="IANA name for the schedule, such as Europe/Berlin. Empty is UTC.",
            group="schedule",
            meaning="IANA time zone of the `schedule`; empty is UTC",
        ),
    ] = ""
    auto_incident: Annotated[
        bool,
        MonitorField(
            is_default_of_installation=True,
            label="Open an incident",
            hint="Resolved automatically on recovery.",
            group="alerts",
            meaning="an outage opens an incident",
        ),
    ] = True
    renotify_seconds: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(60, 86_400, "seconds", or_zero=True),
            is_default_of_installation=True,
            label="Re-notify interval",
            hint="Repeats until acknowledged; 0 disables.",
            group="alerts",
            meaning="interval of repeated notifications until acknowledgement; 0 is off",
        ),
    ] = 0
    flap_threshold: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(2, 20, or_zero=True),
            label="Flapping from",
            hint="Outages within an hour from which on its alert stays open until it settled.",
            group="alerts",
            meaning="outages within an hour from which on the monitor is flapping: its alert "
            "stays open until the status did not change for 15 minutes; 0 is off",
        ),
    ] = 0
    slow_above_ms: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(1, 600_000, "milliseconds", or_zero=True),
            types=PROBED,
            label="Slow above (ms)",
            hint="Response time in ms that warns without an outage; 0 disables.",
            group="alerts",
            meaning="response time above which checks are slow. A slow monitor stays up, and warns "
            "the channels with `takes_warnings`; 0 is off",
        ),
    ] = 0
    slow_runs: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(1, 20),
            types=PROBED,
            label="Slow after (checks)",
            hint="Slow checks in a row that begin the warning, and fast ones that end it.",
            group="alerts",
            meaning="slow checks in a row that begin the warning, and fast ones that end it",
        ),
    ] = 3
    warn_certificate_days: Annotated[
        int,
        MonitorField(
            bounds=FieldBounds(1, 365, "days", or_zero=True),
            types=CERTIFIED,
            label="Certificate warning (days)",
            hint="Days before the certificate expires that warn without an outage; 0 disables.",
            group="alerts",
            meaning="days before the end of the certificate from which the monitor warns the "
            "channels with `takes_warnings`; it stays up. Types that can use TLS; 0 is off",
        ),
    ] = 0
    conditions: Annotated[
        list[str],
        MonitorField(
            bounds=FieldBounds(1, CONDITION_LONGEST, "characters"),
            entries=FieldBounds(0, CONDITIONS_MOST),
            types=PROBED,
            meaning="expressions that must all be true; default: the requirement of the type",
        ),
    ] = []
    show_values: Annotated[
        bool,
        MonitorField(
            types=PROBED,
            label="Show values",
            hint="A failed condition shows the value from the body, a header or a text result to"
            " members of the project and in notifications.",
            group="conditions",
            meaning="a failed condition shows a value of `[BODY]`, `[HEADER]` or a text "
            "`[RESULT]`; never a secret of the monitor",
        ),
    ] = False
    tags: Annotated[
        list[str],
        MonitorField(
            bounds=FieldBounds(1, 64, "characters"),
            entries=FieldBounds(0, 32),
            group="more",
            meaning="words to select by; the first one groups the overview",
        ),
    ] = []
    region: Annotated[
        str,
        MonitorField(
            bounds=FieldBounds(1, 63, "characters"),
            group="more",
            meaning="region of the runs; one of the configured regions",
        ),
    ] = "core"
    enabled: Annotated[bool, MonitorField(meaning="false pauses the monitor")] = True


_TYPES: Final[dict[str, Any]] = get_type_hints(MonitorFields, include_extras=True)
FIELDS: Final[dict[str, MonitorField]] = {
    name: next(each for each in hint.__metadata__ if isinstance(each, MonitorField))
    for name, hint in _TYPES.items()
}
BOUNDS: Final[dict[str, FieldBounds]] = {
    name: field.bounds for name, field in FIELDS.items() if field.bounds is not None
}
DEFAULTS: Final[dict[str, Any]] = {
    each.name: each.default_factory() if each.default is NODEFAULT else each.default
    for each in structs.fields(MonitorFields)
    if not each.required
}
OF_INSTALLATION: Final = tuple(
    name for name, field in FIELDS.items() if field.is_default_of_installation
)


def _names_of(kind: type) -> tuple[str, ...]:
    return tuple(
        name
        for name, hint in _TYPES.items()
        if kind in (hint.__origin__, get_origin(hint.__origin__))
    )


NUMBERS: Final = _names_of(int)
TEXTS: Final = _names_of(str)
FLAGS: Final = _names_of(bool)
LISTS: Final = _names_of(list)


def required_fields(
    base: type | None = None, names: Iterable[str] = FIELDS, *, kw_only: bool = True
) -> Any:
    """Returns a struct, below `base`, in which each of the fields must be given."""
    return _struct(base, ((name, _TYPES[name]) for name in names), kw_only=kw_only)


def default_fields(base: type | None = None, names: Iterable[str] = OF_INSTALLATION) -> Any:
    """Returns a struct of fields with the defaults of Leadline."""
    return _struct(base, ((name, _TYPES[name], DEFAULTS[name]) for name in names))


def new_fields(base: type) -> Any:
    """Returns a struct in which fields with an installation default are optional (UNSET)."""
    return _struct(
        base,
        (
            (name, _TYPES[name] | UnsetType, UNSET)
            if name in OF_INSTALLATION
            else (name, _TYPES[name], DEFAULTS.get(name, NODEFAULT))
            for name in FIELDS
        ),
    )


def changed_fields(base: type) -> Any:
    """Returns a struct in which each field is optional (UNSET)."""
    return _struct(base, ((name, hint | UnsetType, UNSET) for name, hint in _TYPES.items()))


def _struct(base: type | None, fields: Iterable[tuple[Any, ...]], *, kw_only: bool = True) -> Any:
    bases = None if base is None else (base,)
    return defstruct("Fields", fields, bases=bases, frozen=True, kw_only=kw_only)


# A type checker cannot follow the derivation. It uses the declared fields, whose types are the same
# except for UNSET.
if TYPE_CHECKING:

    class OptionalFields(MonitorFields, frozen=True, kw_only=True):
        name: str = ""

    StoredFields = MonitorFields
    DefaultFields = OptionalFields
else:
    # Positional, as the columns of a row are.
    StoredFields = required_fields(kw_only=False)
    DefaultFields = default_fields()
