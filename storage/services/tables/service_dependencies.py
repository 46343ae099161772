"""Dependencies between the services of a project, with their generation and their terms.

Invariants: an edit locks the project first, because two concurrent edits could close a cycle. Every
change increments the project's generation, which readers use to detect stale graphs. Each present
edge has exactly one open term; an unchanged edge keeps its term.
"""

from collections.abc import Iterable, Sequence

from ...core.key import ServiceKey
from ...engine.pools import LockRank, Tx

# The same lock mode as for compositions: declarations, compositions, dependencies and deletions of
# monitors of one project exclude each other.
_HOLD = """
select graph_generation from projects
where org = %(org)s and id = %(project)s and deleting_since is null
for no key update
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
# Deletes open terms that would end with a length of zero.
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
# If a clock lags, a term can start where an earlier term of the same edge starts; that one reopens.
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
    """Locks the project's graph. Returns its generation, None if the project does not exist."""
    tx.lock_rank(LockRank.PROJECT, "the services of a project")
    generation: int | None = await tx.value(_HOLD, org=org, project=project)
    return generation


async def raise_generation(tx: Tx, org: int, project: int) -> int:
    """Increments the generation of a locked graph."""
    generation: int = await tx.value(_RAISE, org=org, project=project)
    return generation


async def put_edges(tx: Tx, key: ServiceKey, upstreams: Iterable[int]) -> None:
    """Replaces the upstreams of a service in a locked graph."""
    await tx.execute(_DROP, org=key[0], service=key[1])
    wanted: Sequence[int] = sorted(upstreams)
    values = {"org": key[0], "service": key[1], "upstreams": wanted}
    if wanted:
        await tx.execute(_ADD, **values)
    for statement in (_FORGET_TERMS, _CLOSE_TERMS, _OPEN_TERMS):
        await tx.execute(statement, **values, now=tx.now)
