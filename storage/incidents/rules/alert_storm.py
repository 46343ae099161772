"""Storms: several external alerts of one service become one page with a count.

The oldest alert of a storm leads it. Its page covers the others for STORM_US, unless a person has
taken it up. Tickets and pages have storms of their own, and an alert whose page a mute postpones
leads none. Invariant: every alert has a page of its own or is covered by an open leader; if the
leader is resolved, the alerts that it covered page.
"""

from typing import Final

from ...core.instant import MINUTE, SECOND, Instant

STORM_US: Final = 5 * MINUTE
# The first page of an alert waits for the other alerts of its request. The alerts of a resolved
# leader wait for the resolutions of theirs.
GATHER_US: Final = 5 * SECOND


def leads(
    *,
    is_resolved: bool,
    is_taken_up: bool,
    is_covered: bool,
    paged_at: Instant | None,
    is_awaited: bool,
    now: Instant,
) -> bool:
    """Returns whether an alert covers later ones of its service and policy.

    Args:
        is_taken_up: a person has acknowledged, snoozed or reassigned it.
        is_covered: another alert covers it.
        paged_at: the last page, None before the first.
        is_awaited: its first page is due or gathers alerts, and no mute postpones it.
    """
    if is_resolved or is_taken_up or is_covered:
        return False
    return is_awaited if paged_at is None else now - paged_at < STORM_US


def count_line(more: int) -> str:
    """Returns the line of a page about covered alerts, empty without any."""
    if not more:
        return ""
    return f"And {more} more {'alert' if more == 1 else 'alerts'} of the service."
