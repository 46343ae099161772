"""Dependencies, compared with a brute-force search of all paths."""

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from leadline.storage.core.instant import Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.services.rules.service_dependency import (
    DEPTH_MOST,
    UPSTREAMS_MOST,
    Broken,
    DependencyFault,
    DependencyTerm,
    edges_at,
    fault,
    turned,
    ways,
)

Graph = dict[int, list[int]]


def walks(edges: Graph, start: int) -> Iterator[list[int]]:
    """Yields every path from a service that visits no service twice, except that it can end at its
    start.
    """
    waiting = [[start]]
    while waiting:
        walk = waiting.pop()
        yield walk
        for following in edges.get(walk[-1], []):
            if following == start:
                yield [*walk, following]
            elif following not in walk:
                waiting.append([*walk, following])


def is_circle(walk: list[int]) -> bool:
    return len(walk) > 1 and walk[0] == walk[-1]


def has_circle(edges: Graph) -> bool:
    return any(is_circle(walk) for start in edges for walk in walks(edges, start))


def depth(edges: Graph) -> int:
    return max((len(walk) - 1 for start in edges for walk in walks(edges, start)), default=0)


# Edges that lead only from lower to higher keys form no cycle.
_ACYCLIC = st.dictionaries(
    st.integers(0, 6), st.lists(st.integers(0, 6), max_size=3, unique=True), max_size=7
).map(lambda edges: {a: [b for b in bs if b > a] for a, bs in edges.items()})


@given(_ACYCLIC, st.integers(0, 6), st.lists(st.integers(0, 6), max_size=4, unique=True))
@example({1: [0]}, 0, [1])
@example({}, 0, [0])
def test_exactly_cycles_are_refused_and_named(
    edges: Graph, service: int, wanted: list[int]
) -> None:
    after = {**edges, service: wanted}
    said = fault(edges, service, wanted)
    if not has_circle(after):
        assert said is None
        return
    assert said is not None
    assert said.broken is Broken.CYCLE
    assert (said.path[0], said.path[-1]) == (service, service)
    assert list(said.path) in [walk for walk in walks(after, service) if is_circle(walk)]


_CHAINS = st.lists(st.integers(1, 14), max_size=4)


@given(_CHAINS, _CHAINS)
def test_the_maximum_length_of_a_chain(above: list[int], below: list[int]) -> None:
    """Builds chains that end at a service, and chains that begin at the new dependency."""
    edges: Graph = {}
    fresh = iter(range(1, 1_000))

    def chain(length: int) -> list[int]:
        keys = [next(fresh) for _ in range(length)]
        edges.update({one: [other] for one, other in pairwise(keys)})
        return keys

    for length in above:
        edges[chain(length)[-1]] = [0]
    wanted = [chain(length)[0] for length in below]
    said = fault(edges, 0, wanted)
    deepest = depth({**edges, 0: wanted})
    reaching = max(above, default=0) + max(below, default=0)
    if reaching <= DEPTH_MOST:
        assert said is None
    else:
        assert deepest >= reaching
        assert said is not None
        assert said.broken is Broken.DEPTH
        assert len(said.path) == reaching + 1
        after = {**edges, 0: wanted}
        assert all(b in after.get(a, []) for a, b in pairwise(said.path))


def test_the_maximum_number_of_dependencies() -> None:
    assert fault({}, 0, range(1, UPSTREAMS_MOST + 1)) is None
    assert fault({}, 0, range(1, UPSTREAMS_MOST + 2)) == DependencyFault(Broken.TOO_MANY)


def test_previous_dependencies_are_replaced() -> None:
    assert fault({0: [1], 2: [0]}, 0, []) is None
    assert fault({0: [1], 2: [0]}, 1, [2]) == DependencyFault(Broken.CYCLE, [1, 2, 0, 1])
    assert fault({0: [1], 2: [0]}, 0, [2]) == DependencyFault(Broken.CYCLE, [0, 2, 0])


@given(_ACYCLIC, st.integers(0, 6))
def test_every_reachable_service_has_a_shortest_path(edges: Graph, service: int) -> None:
    found = ways(edges, service)
    every = [walk for walk in walks(edges, service) if len(walk) > 1]
    assert set(found) == {walk[-1] for walk in every}
    for key, way in found.items():
        assert way in every
        assert len(way) == min(len(walk) for walk in every if walk[-1] == key)


@given(_ACYCLIC)
def test_edges_are_reversed(edges: Graph) -> None:
    there = {(a, b) for a, bs in edges.items() for b in bs}
    assert {(a, b) for b, as_ in turned(edges).items() for a in as_} == there


def test_a_term_includes_its_start_and_excludes_its_end() -> None:
    terms = [
        DependencyTerm(1, 2, TimeSpan(Instant(10), Instant(20))),
        DependencyTerm(1, 3, TimeSpan(Instant(15), Instant(30))),
        DependencyTerm(4, 1, TimeSpan(Instant(15), Instant(16))),
    ]
    assert edges_at(terms, Instant(9)) == {}
    assert edges_at(terms, Instant(10)) == {1: [2]}
    assert edges_at(terms, Instant(15)) == {1: [2, 3], 4: [1]}
    assert edges_at(terms, Instant(20)) == {1: [3]}
    assert edges_at(terms, Instant(30)) == {}
