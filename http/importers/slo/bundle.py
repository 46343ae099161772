"""Bundle of imported objectives: a service for each indicator."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from ....storage.core.slug import free_slug, slug_of
from ..import_result import CannotImport, ImportResult
from ..source import Source
from ..yaml_file import BadYaml, read_documents
from .openslo import OpenSloObjects, is_openslo, read_openslo
from .slo_documents import (
    BYTES_MOST,
    DOCUMENTS_MOST,
    NAME_LONGEST,
    OBJECTIVES_MOST,
    OwnIndicator,
    Query,
    SloImport,
    SloObjective,
    each_of,
    guarded,
    read_pyrra,
    read_sloth,
)

_SLOTH: Final = frozenset({"sloth.slok.dev/v1"})
_PYRRA: Final = frozenset({"pyrra.dev/v1alpha1"})


def read_files(paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Returns the documents of files by their names.

    Raises:
        CannotImport with the file.
    """
    found: dict[str, list[Any]] = {}
    size = many = 0
    for path in paths:
        with path.open("rb") as file:
            data = file.read(BYTES_MOST + 1 - size)
        size += len(data)
        if size > BYTES_MOST:
            raise CannotImport(f"{path}: the files have more than {BYTES_MOST} bytes")
        try:
            found[str(path)] = read_documents(data, DOCUMENTS_MOST - many)
        except BadYaml as error:
            raise CannotImport(f"{path}: {error}") from error
        many += len(found[str(path)])
    return found


def read_objectives(documents: Mapping[str, Sequence[Any]]) -> SloImport:
    """Returns the objectives of the documents by file."""
    found, objects = SloImport(), OpenSloObjects()
    known = []
    for place, document in each_of(documents):
        if document is None:
            continue
        if not isinstance(document, Mapping) or not all(isinstance(key, str) for key in document):
            found.lose(place, "", "is no mapping with an apiVersion")
            continue
        source = Source(document)
        known.append((place, document, source))
        if is_openslo(document):
            objects.add(place, source)
    for place, document, source in known:
        _read(found, place, document, source, objects)
        if len(found.objectives) > OBJECTIVES_MOST:
            raise CannotImport(f"{place}: the files have more than {OBJECTIVES_MOST} objectives")
    objects.report(found)
    return found


def _read(
    found: SloImport,
    place: str,
    document: Mapping[str, Any],
    source: Source,
    objects: OpenSloObjects,
) -> None:
    version, kind = document.get("apiVersion"), document.get("kind")
    if is_openslo(document):
        guarded(found, place, "", partial(read_openslo, found, place, source, objects))
    elif document.get("version") == "prometheus/v1" or version in _SLOTH:
        guarded(found, place, "", partial(read_sloth, found, place, source))
    elif version in _PYRRA and kind == "ServiceLevelObjective":
        guarded(found, place, "", partial(read_pyrra, found, place, source))
    else:
        said = "is none of openslo/v1, prometheus/v1 of Sloth and pyrra.dev/v1alpha1"
        found.lose(place, f"apiVersion {str(version)[:60]!r}", said)


def slo_bundle(
    found: SloImport,
    organization: str,
    project: str,
    measured_by: Mapping[str, Sequence[str]],
    prometheus: str,
) -> dict[str, Any]:
    """Returns the bundle of format 3 with the objectives that have an indicator.

    `measured_by` are the monitors that the caller names, by `SLO` or `SERVICE/SLO`. `prometheus` is
    the address of the server that answers queries, empty without one.

    Raises:
        CannotImport for a name that no objective has.
    """
    _expect_known(found, measured_by)
    made, services = ImportResult(), dict[str, dict[str, Any]]()
    for one in found.objectives:
        monitors = _monitors(found, made, one, measured_by, prometheus, (organization, project))
        if monitors is None:
            continue
        own = one.indicator if isinstance(one.indicator, OwnIndicator) else None
        # Monitors that the caller names make another service.
        own = own if own and monitors == own.monitors else None
        uid = slug_of((own.service if own else _name_of(one))[:NAME_LONGEST], "service")
        parts = _parts(one, own, monitors, uid)
        entry = services.get(uid)
        if entry is not None and (
            any(entry.get(name) != parts.get(name) for name in ("monitors", "policies"))
            or one.window in _windows(entry)
        ):
            uid = free_slug(uid, services)
            parts.pop("slug", None)
            entry = None
        if entry is None:
            entry = services[uid] = {**parts, "sla_targets": {}}
        entry["sla_targets"][one.window] = {
            "objective": one.objective,
            **({"burn_alert_enabled": True, "burn_rules": one.rules} if one.rules else {}),
        }
    head = {"format": 3, "organization": organization, "project": project}
    sections = {"monitors": made.monitors, "services": services}
    return head | {name: entries for name, entries in sections.items() if entries}


def _parts(
    one: SloObjective, own: OwnIndicator | None, monitors: list[str], uid: str
) -> dict[str, Any]:
    """Returns the entry of a service without objectives."""
    name = (own and (one.title or own.service)) or _name_of(one)
    return {
        "name": name[:NAME_LONGEST],
        **({"slug": one.service} if own and one.service != uid else {}),
        **({"description": one.description[:500]} if one.description else {}),
        "monitors": monitors,
        "sli": monitors,
        **({"policies": dict(own.policies)} if own and own.policies else {}),
    }


def _windows(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = entry["sla_targets"]
    return found


def _name_of(one: SloObjective) -> str:
    return one.service if one.service == one.name else f"{one.service} {one.name}"


def _expect_known(found: SloImport, measured_by: Mapping[str, Sequence[str]]) -> None:
    known = {name for one in found.objectives for name in (one.name, one.full_name)}
    for name in measured_by:
        if name not in known:
            raise CannotImport(f"--sli {name[:100]!r} names no objective of the files")


def _monitors(
    found: SloImport,
    made: ImportResult,
    one: SloObjective,
    measured_by: Mapping[str, Sequence[str]],
    prometheus: str,
    home: tuple[str, str],
) -> list[str] | None:
    """Returns the uids of the monitors that measure an objective, None without a monitor.

    `home` are the organization and the project of the bundle.
    """
    named = measured_by.get(one.full_name) or measured_by.get(one.name)
    if named:
        found.note(one.place, "", f"is measured by {', '.join(named)}: its query is not used")
        return list(named)
    indicator = one.indicator
    if isinstance(indicator, Query):
        return _monitor_of(found, made, one, indicator, prometheus)
    if isinstance(indicator, str):
        found.lose(one.place, "", indicator)
        return None
    if (indicator.organization, indicator.project) != home:
        place = f"{indicator.organization}/{indicator.project}"[:NAME_LONGEST]
        found.lose(one.place, "spec.indicator", f"is of the project {place}, not {'/'.join(home)}")
        return None
    return list(indicator.monitors)


def _monitor_of(
    found: SloImport, made: ImportResult, one: SloObjective, query: Query, prometheus: str
) -> list[str] | None:
    if not prometheus:
        said = (
            f"is a query of Prometheus: give its address with --prometheus, or {one.name}=MONITOR"
        )
        found.lose(one.place, "", f"{said} with --sli")
        return None
    uid = made.name(f"{one.service} {one.name}")
    entry = {
        "name": f"{one.service} {one.name}"[:NAME_LONGEST],
        "type": "promql",
        "target": prometheus,
        "config": {"query": query.text},
        "conditions": [query.condition],
    }
    if made.add(uid, entry, []) and made.monitors[uid].get("conditions") == [query.condition]:
        found.note(one.place, "", "is met while the condition is true for every series")
        return [uid]
    made.monitors.pop(uid, None)
    why = made.notes[-1].lost[0] if made.notes else "is invalid"
    found.lose(one.place, "spec.indicator", why)
    return None
