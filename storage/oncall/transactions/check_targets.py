"""Whom alerts are sent to is named by id; what is no id, not there, or another project's is refused
in the same words, so that nobody learns what exists elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn
from uuid import UUID

from ...core.refusal import Refused
from ...engine.pools import Tx
from ...notifications.tables.channels import lock_shared_channels
from ..rules.escalation import EscalationTarget, TargetKind
from ..tables.escalation_policies import lock_shared_policy
from ..tables.oncall_schedules import lock_shared_schedules

NOT_OURS: Final = "names nothing of this project that alerts can be sent to"


@dataclass(frozen=True, slots=True)
class RequestedTarget:
    """A target as it was given, and the field in which it stands."""

    field: str
    kind: TargetKind
    text: str

    @property
    def uid(self) -> UUID | None:
        """None for what is no id."""
        try:
            return UUID(self.text) if len(self.text) == 36 else None
        except ValueError:
            return None


async def lock_targets(
    tx: Tx, org: int, project: int, given: Sequence[RequestedTarget]
) -> list[EscalationTarget]:
    """The keys of what is named, in its order; nothing of it goes until we are done. Refused with
    the field of the first that is not the project's."""
    wanted: dict[TargetKind, set[UUID]] = {kind: set() for kind in TargetKind}
    for one in given:
        if one.uid is not None:
            wanted[one.kind].add(one.uid)
    found: dict[TargetKind, dict[UUID, int]] = {kind: {} for kind in TargetKind}
    # Schedules before channels, by rank.
    if wanted[TargetKind.SCHEDULE]:
        schedules = await lock_shared_schedules(tx, org, project, wanted[TargetKind.SCHEDULE])
        found[TargetKind.SCHEDULE] = schedules
    if wanted[TargetKind.CHANNEL]:
        channels = await lock_shared_channels(tx, org, project, wanted[TargetKind.CHANNEL])
        found[TargetKind.CHANNEL] = channels
    targets = []
    for one in given:
        key = found[one.kind].get(one.uid) if one.uid is not None else None
        if key is None:
            raise Refused("invalid", one.field, NOT_OURS)
        targets.append(EscalationTarget(one.kind, key))
    return targets


def refuse_policy_without_incidents() -> NoReturn:
    """A ladder hangs on an incident; without one it would page nobody, and look as if it did."""
    raise Refused(
        "invalid",
        "escalation_policy_id",
        "needs auto_incident, as it is an incident that escalates",
    )


async def lock_policy_named(
    tx: Tx, org: int, project: int, text: str | None, *, opens_incidents: bool
) -> int | None:
    """The key of a monitor's ladder, which stays until we are done; None for none. Refused where
    it is not the project's, and where the monitor opens no incident that it could hang on."""
    if not text:
        return None
    if not opens_incidents:
        refuse_policy_without_incidents()
    uid = RequestedTarget("escalation_policy_id", TargetKind.CHANNEL, text).uid
    key = await lock_shared_policy(tx, org, project, uid) if uid is not None else None
    if key is None:
        raise Refused("invalid", "escalation_policy_id", NOT_OURS)
    return key
