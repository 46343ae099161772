"""Installation-wide defaults of new monitors.

Invariant: defaults never produce an invalid monitor. The timeout is at most the interval, and types
do not get settings that they cannot have.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from .fields import BOUNDS, DefaultFields
from .monitor import MonitorType

# These types have no further attempts within one run.
_WITHOUT_RETRIES: Final = frozenset(
    {
        MonitorType.ASYNC_CANARY,
        MonitorType.DOMAIN,
        MonitorType.PUSH,
        MonitorType.COMPOSITE,
    }
)


class MonitorDefaults(DefaultFields, frozen=True, kw_only=True):
    """The fields of a new monitor that an administrator can set."""


# Interval of a new monitor of a domain: the defaults of the installation are for targets.
DOMAIN_INTERVAL_DEFAULT: Final = 21_600
BUILT_IN: Final = MonitorDefaults()


def defaults_fault(defaults: MonitorDefaults) -> tuple[str, str] | None:
    """Returns the first invalid field and the rule that it breaks."""
    for name, value in msgspec.structs.asdict(defaults).items():
        broken = BOUNDS[name].fault(value) if name in BOUNDS else None
        if broken is not None:
            return name, broken
    if defaults.timeout_seconds > defaults.interval_seconds:
        return "timeout_seconds", "must not be above the interval"
    return None


def completed(given: Mapping[str, Any], kind: str, defaults: MonitorDefaults) -> dict[str, Any]:
    """Returns the given settings completed with the defaults for the type."""
    found = dict(given)
    if kind == MonitorType.DOMAIN:
        found.setdefault("interval_seconds", DOMAIN_INTERVAL_DEFAULT)
    for name, value in msgspec.structs.asdict(defaults).items():
        found.setdefault(name, value)
    if "retries" not in given and kind in _WITHOUT_RETRIES:
        found["retries"] = 0
    if "timeout_seconds" not in given:
        # An invalid interval is refused by its own rule.
        found["timeout_seconds"] = max(min(found["timeout_seconds"], found["interval_seconds"]), 1)
    return found
