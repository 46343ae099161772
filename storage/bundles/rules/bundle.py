"""Bundle: the desired monitors, services and on-call objects of a project, in one document.

Invariant: unknown fields are refused by name; a bundle has no secrets; given settings are
distinguished from absent ones. References between entries are resolved when the bundle is applied.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from ....probes.check.durations import read_duration
from ....probes.check.monitor_spec import FieldType, is_credential_header
from ....probes.check.registry import spec_of
from ...core.decode_error import field_fault
from ...core.instant import SECOND
from ...core.refusal import Refused
from ...core.slug import is_slug
from ...monitors.rules.fields import MonitorFields, new_fields
from ...monitors.rules.monitor import MonitorType
from ...services.rules.service_policy import ServicePolicies
from .bundle_diff import Kind
from .bundle_oncall import (
    CHANNELS_MOST,
    POLICIES_MOST,
    ROUTES_UID,
    SCHEDULES_MOST,
    ChannelEntry,
    PolicyEntry,
    RoutesEntry,
    ScheduleEntry,
    SupportHoursEntry,
    channel_fault,
    expect_entry,
    policy_fault,
    routes_fault,
    schedule_fault,
)
from .bundle_page import PAGES_MOST, PageEntry, page_fault
from .bundle_people import PEOPLE_MOST, PersonEntry, expect_distinct, read_person
from .bundle_settings import (
    SERIES_MOST,
    SETTINGS_UID,
    GatePolicyEntry,
    MaintenanceEntry,
    SettingsEntry,
    TargetEntry,
    WindowText,
    gate_fault,
    maintenance_fault,
    settings_fault,
    targets_fault,
)
from .bundle_webhook import WEBHOOKS_MOST, WebhookEntry, webhook_fault

MONITORS_MOST: Final = 5_000
SERVICES_MOST: Final = 1_000
DEPTH_MOST: Final = 32
# Below the limit of request bodies, so that this module refuses larger bundles.
BYTES_MOST: Final = 3 << 19
REFERENCES_MOST: Final = 200

T = TypeVar("T")
_UID_RULE: Final = "must match ^[a-z][a-z0-9-]{0,62}$"


class BundleEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


if TYPE_CHECKING:

    class _NewFields(BundleEntry, MonitorFields, frozen=True, kw_only=True): ...

else:
    _NewFields = new_fields(BundleEntry)


class MonitorEntry(_NewFields, frozen=True, kw_only=True):
    """Monitor of a bundle.

    References are uids in the bundle, or slugs or ids of monitors of the project.
    `escalation_policy` and `channels` are names or ids, in format 3 also uids. Without `channels`,
    people attach them; without `sla_targets`, people set the objectives. A `regional` composite is
    one check in the regions of its children.
    """

    type: MonitorType
    slug: str | UnsetType = UNSET
    depends_on: list[str] = []
    config: dict[str, Any] = {}
    escalation_policy: str = ""
    regional: bool = False
    channels: list[str] | UnsetType = UNSET
    sla_targets: dict[WindowText, TargetEntry] | UnsetType = UNSET


class AlertingEntry(BundleEntry, frozen=True, kw_only=True):
    """Service paging of a bundle entry."""

    owns_paging: bool = False
    page_on: tuple[Literal["down", "degraded"], ...] = ("down",)
    page_on_unknown: bool = False
    confirm_evaluations: int = 2
    renotify_seconds: int = 0


class ServiceEntry(BundleEntry, frozen=True, kw_only=True):
    """Service of a bundle.

    `monitors` and `sli` are those of a declaration; without them the service is not declared.
    `depends_on` names services by uid, slug or id.
    """

    name: str | UnsetType = UNSET
    slug: str | UnsetType = UNSET
    description: str = ""
    runbook_url: str = ""
    escalation_policy: str = ""
    oncall_schedule: str = ""
    depends_on: list[str] = []
    monitors: list[str] = []
    sli: list[str] = []
    policies: ServicePolicies = ServicePolicies()
    alerting: AlertingEntry = AlertingEntry()
    sla_targets: dict[WindowText, TargetEntry] = {}
    support_hours: SupportHoursEntry | UnsetType = UNSET
    gate_policy: GatePolicyEntry | UnsetType | None = UNSET


# The sections with their kind, the first format that has each, and its bound. The order is that of
# a document and of a plan.
SECTIONS: Final[dict[str, tuple[Kind, int, int]]] = {
    "people": ("person", 3, PEOPLE_MOST),
    "channels": ("channel", 3, CHANNELS_MOST),
    "schedules": ("schedule", 3, SCHEDULES_MOST),
    "escalation_policies": ("escalation_policy", 3, POLICIES_MOST),
    "monitors": ("monitor", 1, MONITORS_MOST),
    "services": ("service", 2, SERVICES_MOST),
    "routes": ("alert_routes", 3, 1),
    "maintenance": ("maintenance_series", 3, SERIES_MOST),
    "status_pages": ("status_page", 3, PAGES_MOST),
    "webhooks": ("webhook", 3, WEBHOOKS_MOST),
    "project_settings": ("project_settings", 3, 1),
}
# Sections that are one object, with its only uid.
SINGLE: Final = {"routes": ROUTES_UID, "project_settings": SETTINGS_UID}
FORMATS: Final = (1, 2, 3)


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """Parsed bundle. `organization` and `project` are slugs or ids.

    `stated` are the sections that it decides about. Objects of other sections are left alone.
    A section of SINGLE is empty, or has the one entry.
    """

    format: int
    organization: str
    project: str
    stated: frozenset[str]
    people: dict[str, PersonEntry] = {}
    monitors: dict[str, MonitorEntry] = {}
    services: dict[str, ServiceEntry] = {}
    channels: dict[str, ChannelEntry] = {}
    schedules: dict[str, ScheduleEntry] = {}
    escalation_policies: dict[str, PolicyEntry] = {}
    routes: dict[str, RoutesEntry] = {}
    maintenance: dict[str, MaintenanceEntry] = {}
    status_pages: dict[str, PageEntry] = {}
    webhooks: dict[str, WebhookEntry] = {}
    project_settings: dict[str, SettingsEntry] = {}

    @property
    def named(self) -> list[tuple[Kind, str]]:
        """Returns kind and uid of all entries."""
        return [(SECTIONS[name][0], uid) for name in SECTIONS for uid in getattr(self, name)]

    def states(self, section: str) -> bool:
        return section in self.stated


def empty_bundle(organization: str, project: str) -> Bundle:
    """Returns a bundle that names no object, so that all objects of its source become orphans."""
    return Bundle(
        format=FORMATS[-1],
        organization=organization,
        project=project,
        stated=frozenset(SECTIONS),
    )


_HEAD: Final = frozenset({"format", "organization", "project"})


def read_bundle(document: object) -> Bundle:
    """Parses a bundle.

    Raises:
        Refused invalid with the field of the first fault.
    """
    if not isinstance(document, Mapping):
        raise _wrong("", "must be a mapping of format, organization, project and monitors")
    given = cast("Mapping[object, object]", document)
    form = given.get("format")
    if type(form) is not int or form not in FORMATS:
        raise _wrong("format", "must be 1, 2 or 3")
    for name in given:
        _, since, _ = SECTIONS.get(str(name), ("", 0, 0))
        if name not in _HEAD and not 0 < since <= form:
            hint = f": {name} need format {since}" if since else ""
            raise _wrong(str(name)[:64], f"is not known here{hint}")
    if is_too_deep(document):
        raise _wrong("", f"is nested deeper than {DEPTH_MOST}")
    stated = _stated(given, form)
    readers: dict[str, Callable[[str, dict[str, Any]], Any]] = {
        "people": _person,
        "channels": _channel,
        "schedules": _schedule,
        "escalation_policies": _policy,
        "monitors": partial(_monitor, form),
        "services": partial(_service, form),
        "maintenance": _maintenance,
        "status_pages": _page,
        "webhooks": _webhook,
    }
    found: dict[str, dict[str, Any]] = {
        section: {
            uid: read(f"{section}.{uid}", entry)
            for uid, entry in _entries(given, section, SECTIONS[section][2])
        }
        for section, read in readers.items()
        if section in stated
    }
    defaults = [uid for uid, one in found.get("escalation_policies", {}).items() if one.default]
    if len(defaults) > 1:
        rule = f"must not be given twice: {defaults[0]} is the default of the project"
        raise _wrong(f"escalation_policies.{defaults[1]}.default", rule)
    expect_distinct(found.get("people", {}))
    if given.get("routes") is not None:
        found["routes"] = {ROUTES_UID: _routes(given["routes"])}
    if given.get("project_settings") is not None:
        found["project_settings"] = {SETTINGS_UID: _settings(given["project_settings"])}
    return Bundle(
        format=form,
        organization=_text(given, "organization"),
        project=_text(given, "project"),
        stated=stated,
        **found,
    )


def _stated(given: Mapping[object, object], form: int) -> frozenset[str]:
    """Returns the sections that a bundle decides about.

    One of format 1 or 2 always decides about monitors and services.
    """
    if form < FORMATS[-1]:
        return frozenset({"monitors", "services"})
    return frozenset(name for name in SECTIONS if name in given)


def is_too_deep(document: object) -> bool:
    level = [document]
    for _ in range(DEPTH_MOST):
        inner: list[object] = []
        for item in level:
            if isinstance(item, Mapping):
                inner += cast("Mapping[object, object]", item).values()
            elif isinstance(item, list):
                inner += cast("list[object]", item)
        level = inner
    return any(isinstance(item, Mapping | list) for item in level)


def _wrong(field: str, rule: str) -> Refused:
    return Refused("invalid", field or "bundle", rule)


def _text(given: Mapping[object, object], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise _wrong(name, "must be a slug or an id")
    return value


def _entries(
    given: Mapping[object, object], name: str, most: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = given.get(name)
    if entries is None and (name in given or name != "monitors"):
        return
    if not isinstance(entries, Mapping):
        raise _wrong(name, "must be a mapping from uids to objects")
    if len(entries) > most:
        raise _wrong(name, f"must have at most {most} entries")
    for uid, entry in cast("Mapping[object, object]", entries).items():
        if not isinstance(uid, str) or not is_slug(uid):
            raise _wrong(f"{name}.{str(uid)[:64]}", _UID_RULE)
        if not isinstance(entry, Mapping):
            raise _wrong(f"{name}.{uid}", "must be a mapping")
        yield uid, dict(cast("Mapping[str, Any]", entry))


def _monitor(form: int, path: str, entry: dict[str, Any]) -> MonitorEntry:
    _expect_format(path, entry, form, "channels", "sla_targets", "regional")
    _read_durations(path, entry, entry.keys())
    targets = entry.get("sla_targets")
    if isinstance(targets, Mapping):
        entry["sla_targets"] = targets = dict(cast("Mapping[str, Any]", targets))
        _read_nested_durations(f"{path}.sla_targets", targets)
    config = entry.get("config")
    spec = spec_of(str(entry.get("type")))
    if isinstance(config, Mapping) and spec is not None:
        entry["config"] = config = dict(cast("Mapping[str, Any]", config))
        numbers = [each.name for each in spec.fields if each.type is FieldType.INTEGER]
        _read_durations(f"{path}.config", config, numbers)
    found = _convert(path, entry, MonitorEntry)
    for field, rule in _secret_faults(found):
        raise _wrong(f"{path}.{field}", rule)
    if found.regional and found.type != MonitorType.COMPOSITE:
        raise _wrong(f"{path}.regional", "is for monitors of type composite")
    channels = [] if found.channels is UNSET else found.channels
    _bound_references(path, depends_on=found.depends_on, channels=channels)
    if "" in channels:
        raise _wrong(f"{path}.channels", "must not name an empty text")
    if found.sla_targets is not UNSET:
        expect_entry(path, targets_fault("sla_targets", found.sla_targets))
    return found


def _expect_format(path: str, entry: Mapping[str, Any], form: int, *names: str) -> None:
    for name in names if form < FORMATS[-1] else ():
        if name in entry:
            raise _wrong(f"{path}.{name}", f"needs format {FORMATS[-1]}")


def _person(path: str, entry: dict[str, Any]) -> PersonEntry:
    return read_person(path, _convert(path, entry, PersonEntry))


def _channel(path: str, entry: dict[str, Any]) -> ChannelEntry:
    found = _convert(path, entry, ChannelEntry)
    expect_entry(path, channel_fault(found))
    return found


def _schedule(path: str, entry: dict[str, Any]) -> ScheduleEntry:
    _read_nested_durations(path, entry)
    found = _convert(path, entry, ScheduleEntry)
    expect_entry(path, schedule_fault(found))
    return found


def _policy(path: str, entry: dict[str, Any]) -> PolicyEntry:
    _read_nested_durations(path, entry)
    found = _convert(path, entry, PolicyEntry)
    expect_entry(path, policy_fault(found))
    return found


def _routes(given: object) -> RoutesEntry:
    if not isinstance(given, Mapping):
        raise _wrong("routes", "must be a mapping of rules and default")
    found = _convert("routes", given, RoutesEntry)
    expect_entry("routes", routes_fault(found))
    return found


def _settings(given: object) -> SettingsEntry:
    if not isinstance(given, Mapping):
        raise _wrong("project_settings", "must be a mapping of settings")
    settings = dict(cast("Mapping[str, Any]", given))
    _read_nested_durations("project_settings", settings)
    found = _convert("project_settings", settings, SettingsEntry)
    expect_entry("project_settings", settings_fault(found))
    return found


def _maintenance(path: str, entry: dict[str, Any]) -> MaintenanceEntry:
    _read_durations(path, entry, entry.keys())
    found = _convert(path, entry, MaintenanceEntry)
    expect_entry(path, maintenance_fault(found))
    return found


def _page(path: str, entry: dict[str, Any]) -> PageEntry:
    found = _convert(path, entry, PageEntry)
    expect_entry(path, page_fault(found))
    return found


def _webhook(path: str, entry: dict[str, Any]) -> WebhookEntry:
    found = _convert(path, entry, WebhookEntry)
    expect_entry(path, webhook_fault(found))
    return found


def _service(form: int, path: str, entry: dict[str, Any]) -> ServiceEntry:
    _expect_format(path, entry, form, "support_hours", "gate_policy")
    _read_nested_durations(path, entry)
    found = _convert(path, entry, ServiceEntry)
    _bound_references(path, depends_on=found.depends_on, monitors=found.monitors, sli=found.sli)
    expect_entry(path, targets_fault("sla_targets", found.sla_targets))
    expect_entry(path, gate_fault("gate_policy", found.gate_policy))
    return found


def _bound_references(path: str, **lists: list[str]) -> None:
    for name, references in lists.items():
        if len(references) > REFERENCES_MOST:
            raise _wrong(f"{path}.{name}", f"must have at most {REFERENCES_MOST} entries")
        if len(set(references)) < len(references):
            raise _wrong(f"{path}.{name}", "must not name anything twice")


def _convert(path: str, entry: object, shape: type[T]) -> T:
    try:
        return msgspec.convert(entry, shape)
    except msgspec.ValidationError as error:
        field, rule = field_fault(str(error), shape)
        raise _wrong(f"{path}.{field}".rstrip("."), rule) from None


def _read_durations(path: str, given: dict[str, Any], names: Any) -> None:
    """Converts durations such as `30s` or `1h30m` in fields of seconds."""
    for name in list(names):
        value = given.get(name)
        if not str(name).endswith("_seconds") or not isinstance(value, str):
            continue
        found_us = read_duration(value)
        if found_us is None or found_us % SECOND:
            rule = "must be a number of seconds, or a duration such as 30s or 1h30m"
            raise _wrong(f"{path}.{name}", rule)
        given[name] = found_us // SECOND


def _read_nested_durations(path: str, entry: dict[str, Any]) -> None:
    """Converts durations of a service at all levels, since it has no free-form keys."""
    _read_durations(path, entry, entry.keys())
    for name, value in entry.items():
        if isinstance(value, Mapping):
            entry[name] = inner = dict(cast("Mapping[str, Any]", value))
            _read_nested_durations(f"{path}.{name}", inner)
        elif isinstance(value, list):
            entry[name] = [dict(one) if isinstance(one, Mapping) else one for one in value]
            for at, one in enumerate(entry[name]):
                if isinstance(one, dict):
                    _read_nested_durations(f"{path}.{name}[{at}]", one)


def _secret_faults(entry: MonitorEntry) -> Iterator[tuple[str, str]]:
    """Yields secrets, which a bundle must not contain. A blank keeps the stored value."""
    spec = spec_of(entry.type)
    for field in spec.fields if spec else ():
        value = entry.config.get(field.name)
        if not field.secret or value in (None, ""):
            continue
        if field.type is FieldType.HEADERS and isinstance(value, Mapping):
            for name, content in cast("Mapping[object, object]", value).items():
                if is_credential_header(str(name)) and content != "":
                    yield (
                        f"config.{field.name}.{name}",
                        "is a secret, which a bundle must not contain",
                    )
        elif field.type not in (FieldType.HEADERS, FieldType.DOCUMENT):
            refers = any(each.name == f"{field.name}_ref" for each in spec.fields)  # type: ignore[union-attr]
            hint = f": keep it as a secret of the project and name it in {field.name}_ref"
            yield (
                f"config.{field.name}",
                f"is a secret, which a bundle must not contain{hint * refers}",
            )
