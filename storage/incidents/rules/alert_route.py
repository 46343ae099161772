"""Routes of external alerts: the first route whose matchers match decides, else the default.

Invariants: exactly one route or the default decides about an alert, or the alert is unrouted. The
order of the routes is that of their list.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ...mutes.rules.label_matcher import (
    BadMatcher,
    LabelMatcher,
    match_all,
    matchers_text,
    parse_matchers,
    plain_labels,
)

ROUTES_MOST: Final = 100
LABELS_MOST: Final = 200


def route_matchers(text: str) -> tuple[LabelMatcher, ...]:
    """Returns the matchers of a route, of which it needs one.

    Raises: BadMatcher.
    """
    found = parse_matchers(text)
    if not found:
        raise BadMatcher("must have a matcher; the default has none")
    # The normal form can be longer, and is parsed at each use.
    return parse_matchers(matchers_text(found))


def first_match(routes: Sequence[Sequence[LabelMatcher]], labels: Mapping[str, str]) -> int | None:
    """Returns the index of the route that decides about an alert, None without one."""
    known = plain_labels(labels)
    for index, matchers in enumerate(routes):
        if match_all(matchers, known):
            return index
    return None


def matching(routes: Sequence[Sequence[LabelMatcher]], labels: Mapping[str, str]) -> list[bool]:
    """Returns for each route whether it matches, also if an earlier one decides."""
    known = plain_labels(labels)
    return [match_all(matchers, known) for matchers in routes]
