"""Which incidents a change preceded: those that began within a day after it, of its service or of
what depended on that service when they began. That the one came first says nothing of why the
other came.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Final

from ...core.instant import DAY, SECOND, Instant
from ...services.rules.service_dependency import DependencyTerm, edges_at, turned, ways

FOLLOWS_MOST_US: Final = DAY


class ChangeRole(StrEnum):
    """What the changed service was to that of the incident, in the words of the wire."""

    OWN_SERVICE = "own_service"
    UPSTREAM = "upstream"


def precedes(started: Instant, incident: Instant) -> bool:
    """Whether a change that started then came before an incident that began then."""
    return started <= incident <= started + FOLLOWS_MOST_US


def lag_seconds(started: Instant, incident: Instant) -> int:
    """How long after the change the incident began, in whole seconds."""
    return (incident - started) // SECOND


class DependentsIndex:
    """What depended on a service, at any instant of those that its terms tell of."""

    def __init__(self, service: int, terms: Sequence[DependencyTerm]) -> None:
        self._service = service
        self._terms = terms
        self._edges = sorted({at for t in terms for at in (t.span.from_, t.span.until)})
        self._known: dict[int, Collection[int]] = {}

    def role(self, service: int, instant: Instant) -> ChangeRole | None:
        """What it was to a service; None where that did not depend on it."""
        if service == self._service:
            return ChangeRole.OWN_SERVICE
        # Between two instants at which a term begins or ends the graph is the same.
        place = bisect_right(self._edges, instant)
        if place not in self._known:
            edges = edges_at(self._terms, instant)
            self._known[place] = ways(turned(edges), self._service).keys()
        return ChangeRole.UPSTREAM if service in self._known[place] else None
