"""Incidents that a change preceded: those that began within a day after it.

They belong to the changed service, or to a service that depended on it when they began. The order
in time does not imply a cause.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Final

from ...core.instant import DAY, SECOND, Instant
from ...services.rules.service_dependency import DependencyTerm, edges_at, turned, ways

FOLLOWS_MOST_US: Final = DAY


class ChangeRole(StrEnum):
    """Role of the changed service for the incident's service; the value is the API code."""

    OWN_SERVICE = "own_service"
    UPSTREAM = "upstream"


def precedes(started: Instant, incident: Instant) -> bool:
    """Returns whether the incident began at most a day after the start of the change."""
    return started <= incident <= started + FOLLOWS_MOST_US


def lag_seconds(started: Instant, incident: Instant) -> int:
    """Returns the whole seconds from the change to the incident."""
    return (incident - started) // SECOND


class DependentsIndex:
    """Dependents of a service at any instant that its terms cover."""

    def __init__(self, service: int, terms: Sequence[DependencyTerm]) -> None:
        self._service = service
        self._terms = terms
        self._edges = sorted({at for t in terms for at in (t.span.from_, t.span.until)})
        self._known: dict[int, Collection[int]] = {}

    def role(self, service: int, instant: Instant) -> ChangeRole | None:
        """Returns the role of the changed service, None without a dependency."""
        if service == self._service:
            return ChangeRole.OWN_SERVICE
        # The graph is constant between two edges of terms.
        place = bisect_right(self._edges, instant)
        if place not in self._known:
            edges = edges_at(self._terms, instant)
            self._known[place] = ways(turned(edges), self._service).keys()
        return ChangeRole.UPSTREAM if service in self._known[place] else None
