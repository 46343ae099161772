"""Objectives of OpenSLO, Sloth and Pyrra, as one form, with all that is not read.

Each line of the report begins with the file, the number of the document and the path.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

from ..import_result import printable
from ..source import Source

# Bounds of all files together.
BYTES_MOST: Final = 8 << 20
DOCUMENTS_MOST: Final = 1_000
OBJECTIVES_MOST: Final = 1_000
REPORT_MOST: Final = 5_000
NAME_LONGEST: Final = 200
# Durations that are a window of Leadline.
WINDOWS: Final = {
    "24h": "24h",
    "1d": "24h",
    "7d": "7d",
    "168h": "7d",
    "1w": "7d",
    "30d": "30d",
    "720h": "30d",
    "90d": "90d",
    "2160h": "90d",
}
EVENTS: Final = "counts events, and an objective of Leadline measures time"
BY_HAND: Final = "name the monitor that measures it with --sli"


@dataclass(frozen=True, slots=True)
class OwnIndicator:
    """Indicator of an export of Leadline: a service of a project, with its monitors.

    `policies` are those of the service, empty for the default.
    """

    organization: str
    project: str
    service: str
    monitors: Sequence[str]
    policies: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Query:
    """Prometheus query whose value meets the condition while the indicator is good."""

    text: str
    condition: str


@dataclass(slots=True)
class SloObjective:
    """Objective of a file. `place` is its document.

    `indicator` is a service of Leadline, a query, or the reason for neither. `title` is the name
    that people read.
    """

    place: str
    service: str
    name: str
    description: str
    window: str
    objective: float
    indicator: OwnIndicator | Query | str
    rules: list[dict[str, Any]] = field(default_factory=list)
    title: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.service}/{self.name}"


@dataclass(slots=True)
class SloImport:
    """Objectives of files, and a list of omitted parts."""

    objectives: list[SloObjective] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)

    def lose(self, place: str, path: str, why: str) -> None:
        self._add_line(self.lost, place, path, why)

    def note(self, place: str, path: str, why: str) -> None:
        """Reports a setting of an imported objective that is not carried over as it is."""
        self._add_line(self.kept, place, path, why)

    def unread(self, place: str, source: Source, prefix: str = "") -> None:
        for key in source.unread():
            self.note(place, f"{prefix}{key}", "is not carried over")

    def _add_line(self, lines: list[str], place: str, path: str, why: str) -> None:
        if len(lines) < REPORT_MOST:
            lines.append(printable(f"{place}: {path} {why}" if path else f"{place}: {why}"))


def read_sloth(found: SloImport, place: str, source: Source) -> None:
    """Reads a specification of Sloth: `prometheus/v1`, or its custom resource."""
    spec, prefix = source, ""
    if "version" in source:
        source["version"]
    else:
        skip_head(source)
        spec, prefix = source["spec"], "spec."
    service = str(spec["service"])
    for at, one in enumerate(list_of(spec, "slos")):
        path = f"{prefix}slos[{at}]"
        guarded(found, place, path, partial(_sloth, found, place, path, service, one))
    found.unread(place, source)


def _sloth(found: SloImport, place: str, path: str, service: str, one: Source) -> None:
    objective = _percent(one["objective"])
    name = str(one["name"])
    read_all(one.get("sli"))
    if objective is None:
        found.lose(place, f"{path}.objective", NO_OBJECTIVE)
        return
    alerting = one.get("alerting")
    rules = []
    for kind in ("page", "ticket"):
        alert = {} if alerting is None else alerting.get(f"{kind}Alert", {})
        if not (isinstance(alert, Mapping) and alert.get("disable")):
            rules += [{**rule, "severity": kind} for rule in SLOTH_RULES[kind]]
    found.note(place, path, "is over 30 days, the default of Sloth")
    reason = f"sli {EVENTS}: {BY_HAND} {name}=MONITOR"
    found.objectives.append(
        SloObjective(
            place=f"{place}: {path}",
            service=service,
            name=name,
            description=text_of(one.get("description")),
            window="30d",
            objective=objective,
            indicator=reason,
            rules=rules,
        )
    )


# Alerts that Sloth generates for a period of 30 days.
SLOTH_RULES: Final[Mapping[str, list[dict[str, Any]]]] = {
    "page": [
        {"long_window_seconds": 3_600, "short_window_seconds": 300, "threshold": 14.4},
        {"long_window_seconds": 21_600, "short_window_seconds": 1_800, "threshold": 6.0},
    ],
    "ticket": [
        {"long_window_seconds": 86_400, "short_window_seconds": 7_200, "threshold": 3.0},
        {"long_window_seconds": 259_200, "short_window_seconds": 21_600, "threshold": 1.0},
    ],
}
NO_OBJECTIVE: Final = "is not above 0 and below 100 percent with at most four decimals"


def read_pyrra(found: SloImport, place: str, source: Source) -> None:
    """Reads a ServiceLevelObjective of Pyrra."""
    name = str(source["metadata"]["name"])
    skip_head(source)
    spec = source["spec"]
    read_all(spec.get("indicator"))
    window = window_of(found, place, "spec.window", str(spec.get("window", "")))
    objective = _percent(spec["target"])
    if objective is None:
        found.lose(place, "spec.target", NO_OBJECTIVE)
    if objective is None or window is None:
        return
    indicator = spec["indicator"]
    kind = next(iter(indicator), "none")
    why = "is a gauge of any number of series" if kind == "bool_gauge" else EVENTS
    found.objectives.append(
        SloObjective(
            place=place,
            service=name,
            name=name,
            description=text_of(spec.get("description")),
            window=window,
            objective=objective,
            indicator=f"spec.indicator.{kind} {why}: {BY_HAND} {name}=MONITOR",
        )
    )
    found.unread(place, source)


def skip_head(source: Source) -> None:
    """Reads what identifies a document and has no counterpart in an objective."""
    for name in ("apiVersion", "kind"):
        source[name]
    metadata = source["metadata"]
    for name in ("name", "namespace"):
        metadata.get(name)


def read_all(value: Any) -> None:
    """Reads all of an indicator, which is reported as a whole."""
    if isinstance(value, Source):
        for key in value:
            read_all(value[key])


def plain(value: Any) -> Any:
    """Returns a value of a file without the record of what is read."""
    if isinstance(value, Source):
        return {key: plain(value[key]) for key in value}
    return [plain(one) for one in value] if isinstance(value, list) else value


def list_of(source: Source, name: str) -> list[Any]:
    found = source[name]
    if not isinstance(found, list):
        raise TypeError(name)
    return found


def guarded(found: SloImport, place: str, path: str, read: Callable[[], None]) -> None:
    """Reads one objective. An unexpected structure leaves out only this objective."""
    try:
        read()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        found.lose(place, path, "has a structure that the importer does not know")


def _percent(value: Any) -> float | None:
    """Returns an objective in percent, None if Leadline would have to change it."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return percent_of(str(value))


def percent_of(text: str, scale: int = 1) -> float | None:
    """Returns the objective times `scale`, None if it is not one that Leadline stores exactly."""
    if len(text) > 40:
        return None
    try:
        found = Decimal(text) * scale
    except InvalidOperation:
        return None
    if not found.is_finite() or not 0 < found < 100 or found != round(found, 4):
        return None
    return float(found)


def window_of(found: SloImport, place: str, path: str, text: str) -> str | None:
    window = WINDOWS.get(text)
    if window is None:
        found.lose(place, path, f"{text[:20]!r} is none of the windows 24h, 7d, 30d and 90d")
    return window


def text_of(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def each_of(documents: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, Any]]:
    """Yields the documents of files with their places."""
    for name, found in documents.items():
        for number, document in enumerate(found, 1):
            yield f"{name} document {number}", document
