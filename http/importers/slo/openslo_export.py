"""Objectives of a bundle as documents of OpenSLO v1. Source: github.com/OpenSLO/OpenSLO.

The indicator is a ratio of time: good time to measured time. Leadline computes the same ratio,
so that OpenSLO's method Occurrences counts microseconds. A burn rule compares two windows, and a
condition of OpenSLO has one, so burn rules are left out and reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

API_VERSION: Final = "openslo/v1"
SOURCE_TYPE: Final = "Leadline"
# Good time and measured time.
FIGURES: Final = ("good_us", "measured_us")
DESCRIPTION_LONGEST: Final = 1_050
# Windows of Leadline as durations of OpenSLO.
DURATIONS: Final = {"24h": "1d", "7d": "7d", "30d": "30d", "90d": "90d"}


@dataclass(slots=True)
class OpenSloExport:
    """Documents, and a list of omitted settings."""

    documents: list[dict[str, Any]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def openslo_documents(bundle: Mapping[str, Any]) -> OpenSloExport:
    """Returns the objectives of an exported bundle.

    A service is a Service of its slug, a monitor `monitor/SLUG`, and the project `project/SLUG`.
    """
    found = OpenSloExport()
    for uid, service in bundle.get("services", {}).items():
        indicator = {"service": uid, "monitors": service.get("sli") or service.get("monitors", [])}
        # They decide what is good time.
        indicator |= {"policies": service["policies"]} if service.get("policies") else {}
        slug = service.get("slug", uid)
        _add(found, bundle, slug, service, indicator, service.get("sla_targets", {}))
    for uid, monitor in bundle["monitors"].items():
        slug = f"monitor/{monitor.get('slug', uid)}"
        _add(found, bundle, slug, monitor, {"monitors": [uid]}, monitor.get("sla_targets", {}))
    objectives = bundle.get("project_settings", {}).get("objectives", {})
    targets = {window: {"objective": objective} for window, objective in objectives.items()}
    project = bundle["project"]
    _add(found, bundle, f"project/{project}", {"name": f"Project {project}"}, {}, targets)
    return found


def _add(
    found: OpenSloExport,
    bundle: Mapping[str, Any],
    name: str,
    entry: Mapping[str, Any],
    indicator: Mapping[str, Any],
    targets: Mapping[str, Any],
) -> None:
    if not targets:
        return
    found.documents.append(_document("Service", name, entry, _described(entry)))
    for window, target in targets.items():
        head = {"organization": bundle["organization"], "project": bundle["project"]}
        source = {**head, **indicator}
        found.documents.append(_slo(name, entry, window, target["objective"], source))
        if target.get("burn_rules"):
            many = len(target["burn_rules"])
            found.lost.append(f"{name} {window}: burn rules, which compare two windows: {many}")


def _slo(
    name: str,
    entry: Mapping[str, Any],
    window: str,
    objective: float,
    source: Mapping[str, Any],
) -> dict[str, Any]:
    def metric(figure: str) -> dict[str, Any]:
        spec = {**source, "figure": figure}
        return {"metricSource": {"type": SOURCE_TYPE, "spec": spec}}

    spec = {
        **_described(entry),
        "service": name,
        "indicator": {
            "metadata": {"name": f"{name}-availability"},
            "spec": {
                "ratioMetric": {
                    "counter": True,
                    "good": metric(FIGURES[0]),
                    "total": metric(FIGURES[1]),
                }
            },
        },
        "timeWindow": [{"duration": DURATIONS[window], "isRolling": True}],
        "budgetingMethod": "Occurrences",
        "objectives": [{"target": float(Decimal(str(objective)) / 100)}],
    }
    return _document("SLO", f"{name}-{window}", entry, spec)


def _described(entry: Mapping[str, Any]) -> dict[str, Any]:
    description = str(entry.get("description", ""))
    return {"description": description[:DESCRIPTION_LONGEST]} if description else {}


def _document(
    kind: str, name: str, entry: Mapping[str, Any], spec: Mapping[str, Any]
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if entry.get("name"):
        metadata["displayName"] = str(entry["name"])
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": dict(spec)}
