"""Default values of bundle entries, which are omitted on export.

Settings with an installation default are always written, because that default can change.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import NODEFAULT, UNSET, to_builtins
from msgspec.structs import fields

from ...services.rules.service_health import Policies
from ...services.rules.service_policy import written_policies
from .bundle import AlertingEntry, MonitorEntry, ServiceEntry


def _defaults(shape: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(shape):
        default = field.default
        if field.default_factory is not NODEFAULT:
            default = field.default_factory()
        if default is not NODEFAULT and default is not UNSET:
            found[field.encode_name] = to_builtins(default)
    return found


_OF_MONITOR: Final = _defaults(MonitorEntry)
_OF_SERVICE: Final = {
    **_defaults(ServiceEntry),
    "policies": {},
    "alerting": {},
    "support_hours": {"timezone": "", "windows": []},
    "gate_policy": None,
}
_NESTED: Final = {
    "policies": to_builtins(written_policies(Policies())),
    "alerting": to_builtins(AlertingEntry()),
}


def brief_monitor(settings: Mapping[str, Any]) -> dict[str, Any]:
    brief = _beyond(settings, _OF_MONITOR)
    if brief.get("schedule"):
        # It determines the interval.
        brief.pop("interval_seconds", None)
    return brief


def brief_service(settings: Mapping[str, Any]) -> dict[str, Any]:
    nested = {name: _beyond(settings[name], defaults) for name, defaults in _NESTED.items()}
    return _beyond({**settings, **nested}, _OF_SERVICE)


def _beyond(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in settings.items()
        if name not in defaults or value != defaults[name]
    }
