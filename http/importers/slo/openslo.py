"""Objectives of OpenSLO v1. Objects can refer to objects of other documents."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from ....storage.services.rules.service_policy import ServicePolicies, read_policies
from ..source import Source
from .openslo_export import API_VERSION, FIGURES, SOURCE_TYPE
from .slo_documents import (
    BY_HAND,
    EVENTS,
    NO_OBJECTIVE,
    OwnIndicator,
    Query,
    SloImport,
    SloObjective,
    list_of,
    percent_of,
    plain,
    read_all,
    skip_head,
    text_of,
    window_of,
)

_OPERATORS: Final = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
# Kinds that an objective refers to, and those without a counterpart.
REFERRED: Final = frozenset({"Service", "SLI"})
_NO_COUNTERPART: Final = frozenset(
    {"DataSource", "AlertPolicy", "AlertCondition", "AlertNotificationTarget"}
)


class _OwnSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Specification of a metric of a service in an export of Leadline."""

    organization: str
    project: str
    service: Annotated[str, msgspec.Meta(min_length=1)]
    monitors: Annotated[list[str], msgspec.Meta(min_length=1)]
    policies: ServicePolicies = ServicePolicies()


class OpenSloObjects:
    """Objects of all documents that others refer to, by kind and name, with their places."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[str, Source]] = {}
        self._named: set[tuple[str, str]] = set()

    def add(self, place: str, source: Source) -> None:
        metadata = source.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Source) else None
        kind = source.get("kind")
        if isinstance(name, str) and str(kind) in REFERRED:
            self._found.setdefault((str(kind), name), (place, source))

    def get(self, kind: str, name: str) -> Source | None:
        self._named.add((kind, name))
        place_and_source = self._found.get((kind, name))
        return None if place_and_source is None else place_and_source[1]

    def report(self, found: SloImport) -> None:
        """Reports objects that no SLO names, and the labels and annotations of the others."""
        for (kind, name), (place, source) in self._found.items():
            if (kind, name) not in self._named:
                found.lose(place, f"kind {kind}", "is named by no SLO")
                continue
            metadata = source["metadata"]
            for key in metadata:
                if key not in ("name", "displayName"):
                    found.note(place, f"metadata.{key}", "is not carried over")


def is_openslo(document: Mapping[str, Any]) -> bool:
    return document.get("apiVersion") == API_VERSION


def read_openslo(found: SloImport, place: str, source: Source, objects: OpenSloObjects) -> None:
    """Reads an object. Only an SLO becomes an objective."""
    kind = str(source["kind"])
    if kind in REFERRED:
        return
    if kind != "SLO":
        known = "has no counterpart in Leadline" if kind in _NO_COUNTERPART else "is no known kind"
        found.lose(place, f"kind {kind[:60]}", known)
        return
    skip_head(source)
    name, spec = str(source["metadata"]["name"]), source["spec"]
    title = text_of(source["metadata"].get("displayName"))
    windows = list_of(spec, "timeWindow")
    window = _rolling(found, place, windows)
    objectives = list_of(spec, "objectives")
    if len(objectives) != 1:
        found.lose(place, "spec.objectives", f"has {len(objectives)} entries, and 1 is possible")
        return
    one = objectives[0]
    objective = _target(one)
    if objective is None:
        found.lose(place, "spec.objectives[0].target", NO_OBJECTIVE)
    indicator = _indicator(name, spec, one, objects)
    if window is None or objective is None:
        return
    service = str(spec["service"])
    of = objects.get("Service", service)
    found.objectives.append(
        SloObjective(
            place=place,
            service=service,
            name=name,
            description=text_of(spec.get("description") or (of and of["spec"].get("description"))),
            window=window,
            objective=objective,
            indicator=indicator,
            title=title,
        )
    )
    found.unread(place, source)


def _rolling(found: SloImport, place: str, windows: list[Any]) -> str | None:
    if len(windows) != 1:
        found.lose(place, "spec.timeWindow", "is missing")
        return None
    if windows[0].get("isRolling") is not True:
        found.lose(place, "spec.timeWindow[0].calendar", "is no rolling window")
        return None
    return window_of(found, place, "spec.timeWindow[0].duration", str(windows[0]["duration"]))


def _target(one: Source) -> float | None:
    if "targetPercent" in one and "target" not in one:
        return percent_of(str(one["targetPercent"]))
    return percent_of(str(one["target"]), 100)


def _indicator(
    name: str, spec: Source, one: Source, objects: OpenSloObjects
) -> OwnIndicator | Query | str:
    """Returns the indicator, or the reason for none."""
    path = "spec.indicator"
    holder = spec.get("indicator")
    if holder is None:
        path, reference = "spec.indicatorRef", str(spec["indicatorRef"])
        holder = objects.get("SLI", reference)
        if holder is None:
            return f"{path} {reference[:60]!r} is in no document: {BY_HAND} {name}=MONITOR"
    metric, method = holder["spec"], spec.get("budgetingMethod")
    read_all(holder)
    ratio, threshold = metric.get("ratioMetric"), metric.get("thresholdMetric")
    if isinstance(ratio, Source):
        own = _of_leadline(ratio)
        if isinstance(own, OwnIndicator) and method != "Occurrences":
            own = "is of Leadline, and not by Occurrences"
        if isinstance(own, str):
            return f"{path}.spec.ratioMetric {own}: {BY_HAND} {name}=MONITOR"
        return own
    if not isinstance(threshold, Source):
        return f"{path} has no metric: {BY_HAND} {name}=MONITOR"
    query = _query(threshold, one)
    if query is None or method != "Occurrences":
        said = "is no query of Prometheus with op and value, by Occurrences"
        return f"{path}.spec.thresholdMetric {said}: {BY_HAND} {name}=MONITOR"
    return query


def _of_leadline(ratio: Source) -> OwnIndicator | str:
    """Returns the service of an export of Leadline, or why it is none that can be read."""
    metrics = [ratio.get("good"), ratio.get("total")]
    sources = [one["metricSource"] for one in metrics if isinstance(one, Source)]
    if len(sources) != len(metrics) or any(one.get("type") != SOURCE_TYPE for one in sources):
        return EVENTS
    good, total = (plain(one["spec"]) for one in sources)
    if (good.pop("figure", None), total.pop("figure", None)) != FIGURES:
        return f"is no ratio of {FIGURES[0]} to {FIGURES[1]}"
    if good != total:
        return "has another source of good than of total"
    if "service" not in good:
        return "is of a monitor or of the project, and not of a service"
    try:
        own = msgspec.convert(good, _OwnSpec)
    except msgspec.ValidationError as error:
        return f"has a specification that Leadline does not write: {error}"
    if read_policies(own.policies) is None:
        return "has policies that Leadline does not write"
    return OwnIndicator(
        organization=own.organization,
        project=own.project,
        service=own.service,
        monitors=own.monitors,
        policies={} if own.policies == ServicePolicies() else good["policies"],
    )


def _query(threshold: Source, one: Source) -> Query | None:
    source = threshold["metricSource"]
    text = source["spec"].get("query")
    operator = _OPERATORS.get(str(one.get("op")))
    value = one.get("value")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if str(source.get("type", "")).lower() != "prometheus" or operator is None or not is_number:
        return None
    if not isinstance(text, str) or not text.strip():
        return None
    return Query(text.strip(), f"[RESULT] {operator} {value}")
