"""Storms: several external alerts of one service become one page with a count.

The oldest alert of a storm leads it. Its page covers the others for STORM_US, unless a person has
taken it up. Invariant: every alert has a page of its own or is covered by an open leader; if the
leader is resolved, the alerts that it covered page.
"""

from typing import Final

from ...core.instant import MINUTE, SECOND, Instant

STORM_US: Final = 5 * MINUTE
# The first page of an alert waits for the other alerts of its request.
GATHER_US: Final = 5 * SECOND


def leads(
    *,
    is_resolved: bool,
    is_taken_up: bool,
    is_covered: bool,
    paged_at: Instant | None,
    is_due: bool,
    now: Instant,
) -> bool:
    """Returns whether an alert covers later ones of its service and policy.

    Args:
        is_taken_up: a person has acknowledged, snoozed or reassigned it.
        is_covered: another alert covers it.
        paged_at: the last page, None before the first.
        is_due: its first page is due.
    """
    if is_resolved or is_taken_up or is_covered:
        return False
    return is_due if paged_at is None else now - paged_at < STORM_US


def count_line(more: int) -> str:
    """Returns the line of a page about covered alerts, empty without any."""
    if not more:
        return ""
    return f"And {more} more {'alert' if more == 1 else 'alerts'} of the service."
