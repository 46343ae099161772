"""Limits of a service declaration: members, SLI members and policies.

A freshness floor has the wire format of a duration, from hours to nanoseconds: `1m30s`.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from ...core.instant import DAY, HOUR, MILLISECOND, MINUTE, SECOND
from ...core.naming import text_rule_broken
from .service_health import Policies

DESCRIPTION_LONGEST: Final = 2_000
MEMBERS_MOST: Final = 200
MULTIPLIER_LEAST: Final = 2
# A longer freshness would require results that retention has deleted.
MULTIPLIER_MOST: Final = 10
FLOOR_MOST_US: Final = DAY
FLOOR_LONGEST: Final = 64

_NANOSECONDS = {
    "h": HOUR * 1_000,
    "m": MINUTE * 1_000,
    "s": SECOND * 1_000,
    "ms": MILLISECOND * 1_000,
    "us": 1_000,
    "ns": 1,
}
_PART = re.compile(r"([0-9]+)(ns|us|ms|s|m|h)", re.ASCII)
FLOOR_PATTERN: Final = "^[0-9]+(ns|us|ms|s|m|h)([0-9]+(ns|us|ms|s|m|h))*$"
_FLOOR = re.compile(FLOOR_PATTERN, re.ASCII)


def floor_us(text: str) -> int | None:
    """Returns the floor in µs, None if it is not valid or not in whole microseconds."""
    if len(text) > FLOOR_LONGEST or _FLOOR.fullmatch(text) is None:
        return None
    parts = _PART.findall(text)
    nanoseconds = sum(int(count) * _NANOSECONDS[unit] for count, unit in parts)
    return None if nanoseconds % 1_000 else nanoseconds // 1_000


def spelt_floor(us: int) -> str:
    """Returns the shortest text of a floor, with units in descending order."""
    parts, rest = [], us * 1_000
    for unit, length in _NANOSECONDS.items():
        count, rest = divmod(rest, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def description_fault(text: str) -> str | None:
    if len(text) > DESCRIPTION_LONGEST:
        return f"must be at most {DESCRIPTION_LONGEST} characters"
    return text_rule_broken(text, multiline=True)


def members_faults(monitors: Sequence[UUID]) -> Iterator[tuple[str, str]]:
    """Yields (field, rule) for each fault."""
    if len(monitors) > MEMBERS_MOST:
        yield "monitors", f"must have at most {MEMBERS_MOST} entries"
    if len(set(monitors)) < len(monitors):
        yield "monitors", "must not name a monitor twice"


def sli_faults(sli: Sequence[UUID]) -> Iterator[tuple[str, str]]:
    if len(set(sli)) < len(sli):
        yield "sli", "must not name a monitor twice"


def policies_faults(policies: Policies) -> Iterator[tuple[str, str]]:
    """Yields the faults of all policies, also of those that the modes do not use."""
    pairs = (
        ("aggregation", "", policies.degraded_min, policies.healthy_min),
        ("region", "_regions", policies.degraded_min_regions, policies.healthy_min_regions),
    )
    for part, suffix, degraded, healthy in pairs:
        for name, value in ((f"degraded_min{suffix}", degraded), (f"healthy_min{suffix}", healthy)):
            if not 1 <= value <= MEMBERS_MOST:
                yield f"policies.{part}.{name}", f"must be 1 to {MEMBERS_MOST}"
        if degraded > healthy:
            rule = f"must not be above healthy_min{suffix}"
            yield f"policies.{part}.degraded_min{suffix}", rule
    if not MULTIPLIER_LEAST <= policies.active_multiplier <= MULTIPLIER_MOST:
        rule = f"must be {MULTIPLIER_LEAST} to {MULTIPLIER_MOST}"
        yield "policies.freshness.active_multiplier", rule
    if not 0 <= policies.active_floor_us <= FLOOR_MOST_US:
        rule = f"must be at most {spelt_floor(FLOOR_MOST_US)}"
        yield "policies.freshness.active_floor", rule
