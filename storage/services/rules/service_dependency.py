"""What a service may be said to depend on: services of its project, in no circle, in chains that
people can still follow.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import Instant
from ...core.time_span import TimeSpan

UPSTREAMS_MOST: Final = 20
# Steps from the first to the last of a chain of services.
DEPTH_MOST: Final = 10

# What each service depends on, by key.
Edges = Mapping[int, Iterable[int]]


class Broken(StrEnum):
    """In the words of the wire."""

    TOO_MANY = "too_many_dependencies"
    CYCLE = "dependency_cycle"
    DEPTH = "dependency_depth"


@dataclass(frozen=True, slots=True)
class DependencyFault:
    """`path` is the circle, from a service back to it, or the chain that is too long."""

    broken: Broken
    path: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class DependencyTerm:
    """How long a service depended on another without a break; its end is not of it."""

    service: int
    upstream: int
    span: TimeSpan


def fault(edges: Edges, service: int, wanted: Sequence[int]) -> DependencyFault | None:
    """Why a service may not depend on what is wanted, instead of on what it did; None: it may.

    The other edges are as the rule has them.
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
    """What depends on each service."""
    found: dict[int, list[int]] = {}
    for service, upstreams in edges.items():
        for upstream in upstreams:
            found.setdefault(upstream, []).append(service)
    return found


def edges_at(terms: Iterable[DependencyTerm], instant: Instant) -> dict[int, list[int]]:
    """What each service depended on at an instant."""
    found: dict[int, list[int]] = {}
    for term in terms:
        if term.span.from_ <= instant < term.span.until:
            found.setdefault(term.service, []).append(term.upstream)
    return found


def ways(edges: Edges, service: int) -> dict[int, list[int]]:
    """Everything that can be reached from a service along its edges, each by a shortest way, which
    begins with the service itself."""
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
    """A shortest way of at least one step."""
    for first in edges.get(start, ()):
        if first == end:
            return [start, end]
    found = ways(edges, start)
    before = [key for key in found if end in edges.get(key, ())]
    return [*found[min(before, key=lambda key: len(found[key]))], end] if before else None


def _longest(edges: Edges, start: int) -> list[int]:
    """A longest way from a service, of edges in no circle."""
    known: dict[int, list[int]] = {}

    def longest(key: int) -> list[int]:
        if key not in known:
            tails = [longest(following) for following in edges.get(key, ())]
            known[key] = [key, *max(tails, key=len, default=[])]
        return known[key]

    return longest(start)
