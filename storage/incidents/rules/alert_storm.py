"""Storms: several external alerts of one service become one page with a count.

The oldest alert of a storm leads it. Its page covers the others for STORM_US, unless a person has
taken it up. A page tells of the alerts that are older than it. A later alert is covered only while
the leader has a further page, which will tell of it, and no mute postpones that page: else the
alert is released and pages. Alerts of low urgency have storms of their own, except while a ticket
destination receives them: each ticket is filed. Invariant: a page after
the creation of every alert tells of it, its own or that of an open leader, or such a page is due;
if the leader is resolved, the alerts that it covered page.
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
    is_told: bool,
    now: Instant,
) -> bool:
    """Returns whether an alert covers a later one of its service and policy.

    Args:
        is_taken_up: a person has acknowledged, snoozed or reassigned it.
        is_covered: another alert covers it.
        paged_at: the last page, None before the first.
        is_awaited: its first or next page is to come, and no mute postpones it.
        is_told: its last page is not older than the later alert.
    """
    if is_resolved or is_taken_up or is_covered:
        return False
    if paged_at is None:
        return is_awaited
    return now - paged_at < STORM_US and (is_told or is_awaited)


def count_line(more: int) -> str:
    """Returns the line of a page about covered alerts, empty without any."""
    if not more:
        return ""
    return f"And {more} more {'alert' if more == 1 else 'alerts'} of the service."
