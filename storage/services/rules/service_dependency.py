"""Limits of service dependencies: within the project, acyclic, and of bounded depth."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import Instant
from ...core.time_span import TimeSpan

UPSTREAMS_MOST: Final = 20
# Number of edges in the longest chain of services.
DEPTH_MOST: Final = 10

# Upstreams per service, by id.
Edges = Mapping[int, Iterable[int]]


class Broken(StrEnum):
    """Kind of fault, with the error code as its value."""

    TOO_MANY = "too_many_dependencies"
    CYCLE = "dependency_cycle"
    DEPTH = "dependency_depth"


@dataclass(frozen=True, slots=True)
class DependencyFault:
    """Fault of a dependency. `path` is the cycle, from a service to itself, or the long chain."""

    broken: Broken
    path: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class DependencyTerm:
    """Span in which a service depended on another without interruption."""

    service: int
    upstream: int
    span: TimeSpan


def fault(edges: Edges, service: int, wanted: Sequence[int]) -> DependencyFault | None:
    """Returns why a service cannot have the wanted upstreams, None if it can.

    `wanted` replaces the present upstreams; the other edges satisfy the rule.
    """
    if len(set(wanted)) > UPSTREAMS_MOST:
        return DependencyFault(Broken.TOO_MANY)
    after = {**edges, service: wanted}
    circle = _way(after, service, service)
    if circle is not None:
        return DependencyFault(Broken.CYCLE, circle)
    chain = [*_longest(turned(after), service)[:0:-1], *_longest(after, service)]
    return DependencyFault(Broken.DEPTH, chain) if len(chain) - 1 > DEPTH_MOST else None


def turned(edges: Edges) -> dict[int, list[int]]:
    """Returns the dependents of each service."""
    found: dict[int, list[int]] = {}
    for service, upstreams in edges.items():
        for upstream in upstreams:
            found.setdefault(upstream, []).append(service)
    return found


def edges_at(terms: Iterable[DependencyTerm], instant: Instant) -> dict[int, list[int]]:
    """Returns the upstreams of each service at an instant."""
    found: dict[int, list[int]] = {}
    for term in terms:
        if term.span.from_ <= instant < term.span.until:
            found.setdefault(term.service, []).append(term.upstream)
    return found


def ways(edges: Edges, service: int) -> dict[int, list[int]]:
    """Returns a shortest path from a service, inclusive, to each service that it reaches."""
    found: dict[int, list[int]] = {service: [service]}
    waiting = [service]
    for key in waiting:
        for following in edges.get(key, ()):
            if following not in found:
                found[following] = [*found[key], following]
                waiting.append(following)
    del found[service]
    return found


def _way(edges: Edges, start: int, end: int) -> list[int] | None:
    """Returns a shortest path with at least one edge, None if no path exists."""
    for first in edges.get(start, ()):
        if first == end:
            return [start, end]
    found = ways(edges, start)
    before = [key for key in found if end in edges.get(key, ())]
    return [*found[min(before, key=lambda key: len(found[key]))], end] if before else None


def _longest(edges: Edges, start: int) -> list[int]:
    """Returns a longest path from a service. The edges are acyclic."""
    known: dict[int, list[int]] = {}

    def longest(key: int) -> list[int]:
        if key not in known:
            tails = [longest(following) for following in edges.get(key, ())]
            known[key] = [key, *max(tails, key=len, default=[])]
        return known[key]

    return longest(start)
