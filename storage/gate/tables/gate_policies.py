"""Revisions of gate policies. The revision that has not ended governs.

Every write locks the project. A new revision number is above all former ones, also after a policy
was deleted.
"""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rows import GatePolicyRow
from ..rules.gate_policy import Document

_COLUMNS = """
g.org, g.id, g.project, p.uid, g.service, s.uid, g.revision,
json_build_object('schema_version', g.schema_version, 'window_mode', g.window_mode,
  'window', g."window", 'clauses', g.clauses,
  'budget_consumed_percent', g.budget_consumed_percent,
  'max_seal_lag_seconds', g.max_seal_lag_seconds, 'unknown_behavior', g.unknown_behavior)::text,
g.began_at, g.ended_at, g.author_label
"""
_FROM = """
from gate_policies g join projects p on p.org = g.org and p.id = g.project
  left join services s on s.org = g.org and s.id = g.service
where g.org = %(org)s and g.project = %(project)s
"""
_WITHIN = f"""
select {_COLUMNS} {_FROM} and (g.service = %(service)s or g.service is null)
  and coalesce(g.ended_at > at(%(from_at)s), true)
order by g.began_at, g.id
"""
_LAST_REVISION = """
select coalesce(max(revision), 0) from gate_policies
where org = %(org)s and project = %(project)s and service is not distinct from %(service)s::int
"""
_INSERT = """
insert into gate_policies (org, project, service, revision, schema_version, window_mode, "window",
  clauses, budget_consumed_percent, max_seal_lag_seconds, unknown_behavior, began_at, author_label)
values (%(org)s, %(project)s, %(service)s, %(revision)s, %(schema_version)s, %(window_mode)s,
  %(window)s, %(clauses)s::json, %(budget_consumed_percent)s, %(max_seal_lag_seconds)s,
  %(unknown_behavior)s, at(%(now)s), %(author)s)
"""
_END = """
update gate_policies set ended_at = at(%(now)s)
where org = %(org)s and project = %(project)s and service is not distinct from %(service)s::int
  and ended_at is null
"""

_read_document = msgspec.json.Decoder(Document).decode


async def select_policies_since(
    tx: Tx, org: int, project: int, service: int, from_: Instant
) -> list[GatePolicyRow]:
    """Returns the policies of the service and its project that governed after `from_`."""
    return await tx.structs(_row, _WITHIN, org=org, project=project, service=service, from_at=from_)


async def put_policy(
    tx: Tx, org: int, project: int, service: int | None, document: Document, author: str
) -> None:
    """Inserts a new revision in place of the present one. The project is locked."""
    last: int = await tx.value(_LAST_REVISION, org=org, project=project, service=service)
    await end_policy(tx, org, project, service)
    await tx.execute(
        _INSERT,
        org=org,
        project=project,
        service=service,
        revision=last + 1,
        schema_version=document.schema_version,
        window_mode=document.window_mode,
        window=document.window,
        clauses=msgspec.json.encode(document.clauses).decode(),
        budget_consumed_percent=document.budget_consumed_percent,
        max_seal_lag_seconds=document.max_seal_lag_seconds,
        unknown_behavior=document.unknown_behavior,
        now=tx.now,
        author=author,
    )


async def end_policy(tx: Tx, org: int, project: int, service: int | None) -> None:
    """Ends the present revision. The project is locked."""
    await tx.execute(_END, org=org, project=project, service=service, now=tx.now)


def _row(
    org: int,
    row_id: int,
    project: int,
    project_uid: UUID,
    service: int | None,
    service_uid: UUID | None,
    revision: int,
    document: str,
    began_at: Instant,
    ended_at: Instant | None,
    author_label: str,
) -> GatePolicyRow:
    return GatePolicyRow(
        org,
        row_id,
        project,
        project_uid,
        service,
        service_uid,
        revision,
        _read_document(document),
        began_at,
        ended_at,
        author_label,
    )
