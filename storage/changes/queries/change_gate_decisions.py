"""Gate decisions that changes refer to, until retention deletes them."""

from collections.abc import Collection
from uuid import UUID

import msgspec

from ...core.key import ServiceKey
from ...engine.pools import Tx
from ...gate.queries.gate_decisions import instant_of

# One lookup per decision, in the partition of its instant.
_SEEN = """
select g.uid, g.state, g.action, g.unoverridden_action
from unnest(%(uids)s::uuid[], %(ats)s::bigint[]) as k(uid, at)
  cross join lateral (
    select d.uid, d.state, d.action, d.unoverridden_action from gate_decisions d
    where d.org = %(org)s and d.evaluated_at = at(k.at) and d.uid = k.uid
      and d.service = %(service)s
    offset 0) g
"""


class ChangeDecision(msgspec.Struct, frozen=True):
    """Gate decision of a change. The actions are None if no policy governed."""

    uid: UUID
    state: str
    action: str | None
    unoverridden_action: str | None

    @property
    def is_overridden(self) -> bool:
        return self.action != self.unoverridden_action


async def select_decided(
    tx: Tx, service: ServiceKey, uids: Collection[UUID]
) -> dict[UUID, ChangeDecision]:
    """Returns the stored decisions of the service among `uids`."""
    if not uids:
        return {}
    rows = await tx.structs(
        ChangeDecision,
        _SEEN,
        org=service[0],
        service=service[1],
        uids=list(uids),
        ats=[instant_of(uid) for uid in uids],
    )
    return {row.uid: row for row in rows}
