"""Reads of changes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from ...core.key import ServiceKey
from ...engine.pools import Tx
from ..rows import ChangeRow, PhaseRow
from ..rules.change import ChangePhaseName, last_recorded
from ..tables import _ONE, _identity, change_row

_PHASE = """
p.org, p.change, p.uid, p.phase, p.occurred_at, p.ref, p.url, p.decision, p.actor_label,
p.actor_user, p.via_token, p.recorded_at
"""

_PHASES = f"""
select {_PHASE} from change_phases p
where p.org = %(org)s and p.change = any(%(changes)s::bigint[])
order by p.change, p.phase <> 'started'
"""


@dataclass(frozen=True, slots=True)
class Happened:
    """Change with its phases in order."""

    change: ChangeRow
    phases: Sequence[PhaseRow]

    @property
    def ref(self) -> str:
        """Returns the last recorded ref."""
        return last_recorded([phase.ref for phase in self.phases])

    @property
    def url(self) -> str:
        return last_recorded([phase.url for phase in self.phases])


async def select_change(
    tx: Tx, service: ServiceKey, source: str, external_id: str
) -> ChangeRow | None:
    return await tx.one(change_row, _ONE, **_identity(service, source, external_id))


async def select_phases(tx: Tx, org: int, changes: Collection[int]) -> dict[int, list[PhaseRow]]:
    """Returns the phases of each change in order: the start, then the end."""
    found: dict[int, list[PhaseRow]] = {change: [] for change in changes}
    for row in await tx.structs(_phase_row, _PHASES, org=org, changes=list(changes)):
        found[row.change].append(row)
    return found


def _phase_row(*columns: Any) -> PhaseRow:
    row = PhaseRow(*columns)
    return structs.replace(row, phase=ChangePhaseName(row.phase))
