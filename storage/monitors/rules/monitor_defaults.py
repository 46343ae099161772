"""What a new monitor has where nobody says otherwise, as it is set for the whole installation.

It keeps true: a default never makes a monitor that could not be. The time-out is never above the
interval, and what a kind cannot have it is not given.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from .fields import BOUNDS, DefaultFields
from .monitor import MonitorType

# These are not run by us again within one check.
_WITHOUT_RETRIES: Final = frozenset(
    {MonitorType.ASYNC_CANARY, MonitorType.PUSH, MonitorType.COMPOSITE}
)


class MonitorDefaults(DefaultFields, frozen=True, kw_only=True):
    """The fields of a new monitor that an administrator can set."""


BUILT_IN: Final = MonitorDefaults()


def defaults_fault(defaults: MonitorDefaults) -> tuple[str, str] | None:
    """The first field that no monitor may have, and why."""
    for name, value in msgspec.structs.asdict(defaults).items():
        broken = BOUNDS[name].fault(value) if name in BOUNDS else None
        if broken is not None:
            return name, broken
    if defaults.timeout_seconds > defaults.interval_seconds:
        return "timeout_seconds", "must not be above the interval"
    return None


def completed(given: Mapping[str, Any], kind: str, defaults: MonitorDefaults) -> dict[str, Any]:
    """What was given of a monitor of that kind, and the defaults of the rest."""
    found = dict(given)
    for name, value in msgspec.structs.asdict(defaults).items():
        found.setdefault(name, value)
    if "retries" not in given and kind in _WITHOUT_RETRIES:
        found["retries"] = 0
    if "timeout_seconds" not in given:
        # An interval that cannot be is refused by its own rule.
        found["timeout_seconds"] = max(min(found["timeout_seconds"], found["interval_seconds"]), 1)
    return found
