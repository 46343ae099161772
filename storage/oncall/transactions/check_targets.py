"""Checks of alert targets, which are given by id.

Invalid ids, unknown ids and ids of other projects have the same error text. The answer therefore
does not show which objects exist in other projects.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn
from uuid import UUID

from ...core.refusal import Refused
from ...engine.pools import Tx
from ...notifications.tables.channels import lock_shared_channels
from ...notifications.tables.person_channels import ensure_people
from ..rules.escalation import EscalationTarget, TargetKind
from ..tables.escalation_policies import lock_shared_policy
from ..tables.oncall_schedules import lock_shared_schedules

NOT_OURS: Final = "does not exist in this project"


@dataclass(frozen=True, slots=True)
class RequestedTarget:
    """Requested target and the name of its input field.

    With `or_person`, the id of a channel can also be that of a member of the project.
    """

    field: str
    kind: TargetKind
    text: str
    or_person: bool = False

    @property
    def uid(self) -> UUID | None:
        """Returns the id, None if the text is not a valid id."""
        try:
            return UUID(self.text) if len(self.text) == 36 else None
        except ValueError:
            return None


async def lock_targets(
    tx: Tx, org: int, project: int, given: Sequence[RequestedTarget]
) -> list[EscalationTarget]:
    """Locks the targets, shared, and returns them in the given order.

    Raises:
        Refused invalid, with the field of the first target outside the project.
    """
    wanted: dict[TargetKind, set[UUID]] = {kind: set() for kind in TargetKind}
    for one in given:
        if one.uid is not None:
            wanted[one.kind].add(one.uid)
    found: dict[TargetKind, dict[UUID, int]] = {kind: {} for kind in TargetKind}
    # Lock order: policies, schedules, channels.
    for uid in sorted(wanted[TargetKind.POLICY]):
        policy = await lock_shared_policy(tx, org, project, uid)
        if policy is not None:
            found[TargetKind.POLICY][uid] = policy
    if wanted[TargetKind.SCHEDULE]:
        schedules = await lock_shared_schedules(tx, org, project, wanted[TargetKind.SCHEDULE])
        found[TargetKind.SCHEDULE] = schedules
    if wanted[TargetKind.CHANNEL]:
        channels = await lock_shared_channels(tx, org, project, wanted[TargetKind.CHANNEL])
        found[TargetKind.CHANNEL] = channels
    unknown = {one.uid for one in given if one.or_person and one.uid} - set(
        found[TargetKind.CHANNEL]
    )
    people = await ensure_people(tx, org, project, wanted[TargetKind.PERSON] | unknown)
    found[TargetKind.PERSON] = people
    targets = []
    for one in given:
        key = found[one.kind].get(one.uid) if one.uid is not None else None
        if key is None and one.or_person and one.uid is not None:
            key = people.get(one.uid)
        if key is None:
            raise Refused("invalid", one.field, NOT_OURS)
        kind = TargetKind.CHANNEL if one.kind is TargetKind.PERSON else one.kind
        targets.append(EscalationTarget(kind, key))
    return targets


def refuse_policy_without_incidents() -> NoReturn:
    """Refuses a policy without incidents, because it would never page."""
    raise Refused(
        "invalid",
        "escalation_policy_id",
        "needs auto_incident, because only incidents escalate",
    )


async def lock_policy_named(
    tx: Tx, org: int, project: int, text: str | None, *, opens_incidents: bool
) -> int | None:
    """Locks a monitor's escalation policy, shared. Returns its id, None for an empty text.

    Raises:
        Refused invalid, if the project has no such policy or the monitor opens no incidents.
    """
    if not text:
        return None
    if not opens_incidents:
        refuse_policy_without_incidents()
    uid = RequestedTarget("escalation_policy_id", TargetKind.CHANNEL, text).uid
    key = await lock_shared_policy(tx, org, project, uid) if uid is not None else None
    if key is None:
        raise Refused("invalid", "escalation_policy_id", NOT_OURS)
    return key
