"""A mute: alerts of a monitor, of a service or of matching labels wait until it ends.

Invariants: a mute changes no result, state or figure. It ends by itself. A set of matchers requires
a label, so that no mute covers every object by accident.
"""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final

from ...core.instant import DAY, SECOND, Instant
from ...core.naming import text_rule_broken
from .label_matcher import BadMatcher, Labels, match_nothing_alone, matchers_text, parse_matchers

REASON_LONGEST: Final = 200
LONGEST_US: Final = 366 * DAY
# Mutes of a project that have not ended.
MUTES_MOST: Final = 200
# Time for which an ended mute is listed.
KEPT_US: Final = 30 * DAY
# Recheck interval of what a mute delays. A user can end it at any time: what is locked then is not
# made due.
LOOK_US: Final = 15 * SECOND


class MuteState(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    ENDED = "ended"


def mute_state(starts_at: Instant, ends_at: Instant, now: Instant) -> MuteState:
    if now >= ends_at:
        return MuteState.ENDED
    return MuteState.ACTIVE if now >= starts_at else MuteState.PENDING


def next_check_at(until: Instant, now: Instant) -> Instant:
    """Returns when to check again whether the mute is over: no later than its end."""
    return min(Instant(now + LOOK_US), until)


def latest(ends: Iterable[Instant]) -> Instant | None:
    """Returns the end of the mute that ends last, None without mutes."""
    return max(ends, default=None)


def span_fault(starts_at: Instant, ends_at: Instant, now: Instant) -> tuple[str, str] | None:
    """Returns the first invalid field and its rule."""
    days = LONGEST_US // DAY
    if starts_at - now > LONGEST_US:
        return "starts_at", f"must be at most {days} days ahead"
    if ends_at <= starts_at:
        return "ends_at", "must be after the start"
    if ends_at <= now:
        return "ends_at", "must lie ahead"
    if ends_at - starts_at > LONGEST_US:
        return "ends_at", f"must be at most {days} days after the start"
    return None


def reason_fault(reason: str) -> str | None:
    if not reason.strip():
        return "must not be blank"
    if len(reason) > REASON_LONGEST:
        return f"must be at most {REASON_LONGEST} characters"
    return text_rule_broken(reason)


def normal_matchers(text: str) -> str:
    """Returns the normal form of the matchers of a mute.

    Raises: BadMatcher.
    """
    matchers = parse_matchers(text)
    if not match_nothing_alone(matchers):
        raise BadMatcher("must have a matcher that does not match an absent label")
    normal = matchers_text(matchers)
    # The normal form can be longer, and is parsed at each use.
    parse_matchers(normal)
    return normal


def labels_of_monitor(
    name: str, slug: str, type_: str, region: str, tags: Collection[str]
) -> Labels:
    """Returns the labels of a monitor: `monitor` (name and slug), `type`, `region` and `tag`."""
    return {"monitor": {name, slug}, "type": {type_}, "region": {region}, "tag": frozenset(tags)}


def labels_of_service(name: str, slug: str) -> Labels:
    """Returns the label of a service: `service` (name and slug)."""
    return {"service": {name, slug}}
