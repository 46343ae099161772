"""Changes that preceded an incident, newest first. Precedence does not imply a cause."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.changes.queries.preceding_changes import Preceding
from ....storage.changes.rules.change import last_recorded
from ....storage.changes.rules.change_precedence import ChangeRole
from ...ui.change_text import OUTCOMES, ChangeSymbol, before, name_of, outcome_of, short, sign_of

SHOWN_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class PrecedingChangeItem:
    """`of` is the name of the service if it is not the service of the incident."""

    uid: UUID
    service: UUID
    of: str
    sign: ChangeSymbol
    name: str
    outcome: str
    before: str


def changes_before(found: Sequence[Preceding]) -> list[PrecedingChangeItem]:
    return [
        PrecedingChangeItem(
            uid=one.phases[0].uid,
            service=one.service,
            of=one.service_name if one.role is ChangeRole.UPSTREAM else "",
            sign=sign_of(one.change.kind, one.phases),
            name=short(name_of(one.change, last_recorded([phase.ref for phase in one.phases]))),
            outcome=OUTCOMES[outcome_of(one.phases)],
            before=before(one.lag_seconds),
        )
        for one in found[:SHOWN_MOST]
    ]
