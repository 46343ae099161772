"""Which services depend on which, within a project, how often that was changed, and since when.

Whoever changes an edge holds the project first: two edits at once could close a circle that neither
of them sees. Each change raises the project's generation, so that who read the graph before knows.
The terms of the edges are written with them: one that stays keeps its term, and of each that stands
exactly one term is open.
"""

from collections.abc import Iterable, Sequence

from ...core.key import ServiceKey
from ...engine.pools import LockRank, Tx

# The mode in which compositions are held too: a project's declarations, its compositions, its graph
# and the deletion of its monitors are changed by one at a time.
_HOLD = """
select graph_generation from projects where org = %(org)s and id = %(project)s for no key update
"""
_RAISE = """
update projects set graph_generation = graph_generation + 1
where org = %(org)s and id = %(project)s
returning graph_generation
"""
_DROP = "delete from service_dependencies where org = %(org)s and service = %(service)s"
_ADD = """
insert into service_dependencies (org, service, upstream)
select %(org)s, %(service)s, * from unnest(%(upstreams)s::int[])
"""
# One that lasted no time is as if it had never been.
_FORGET_TERMS = """
delete from service_dependency_terms
where org = %(org)s and service = %(service)s and until_at = 'infinity'
  and from_at >= at(%(now)s) and upstream <> all(%(upstreams)s::int[])
"""
_CLOSE_TERMS = """
update service_dependency_terms set until_at = at(%(now)s)
where org = %(org)s and service = %(service)s and until_at = 'infinity'
  and upstream <> all(%(upstreams)s::int[])
"""
# Where a clock lags, one may begin where an earlier one of the same edge does: it goes on.
_OPEN_TERMS = """
insert into service_dependency_terms (org, service, upstream, from_at)
select %(org)s, %(service)s, w.upstream, at(%(now)s)
from unnest(%(upstreams)s::int[]) as w(upstream)
where not exists (select from service_dependency_terms t
  where t.org = %(org)s and t.service = %(service)s and t.upstream = w.upstream
    and t.until_at = 'infinity')
on conflict (org, service, upstream, from_at) do update set until_at = 'infinity'
"""


async def lock_graph(tx: Tx, org: int, project: int) -> int | None:
    """The generation of the graph; nobody else changes it until we are done. None where there is
    no such project."""
    tx.lock_rank(LockRank.PROJECT, "the services of a project")
    generation: int | None = await tx.value(_HOLD, org=org, project=project)
    return generation


async def raise_generation(tx: Tx, org: int, project: int) -> int:
    """The graph is held."""
    generation: int = await tx.value(_RAISE, org=org, project=project)
    return generation


async def put_edges(tx: Tx, key: ServiceKey, upstreams: Iterable[int]) -> None:
    """What a service depends on from now on. The graph is held."""
    await tx.execute(_DROP, org=key[0], service=key[1])
    wanted: Sequence[int] = sorted(upstreams)
    values = {"org": key[0], "service": key[1], "upstreams": wanted}
    if wanted:
        await tx.execute(_ADD, **values)
    for statement in (_FORGET_TERMS, _CLOSE_TERMS, _OPEN_TERMS):
        await tx.execute(statement, **values, now=tx.now)
