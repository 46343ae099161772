"""Edits of on-call overrides. The newest active override takes precedence.

A new override deletes the oldest past ones, so that the number per schedule is bounded.
"""

from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit
from ...core.instant import Instant, to_text
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries import oncall_overrides as oncall_overrides_queries
from ..rows import OnCallOverrideRow, ScheduleRow
from ..rules.escalation import TargetKind
from ..rules.oncall_schedule import override_fault
from ..tables import oncall_overrides, oncall_schedules
from .check_targets import RequestedTarget, lock_targets
from .edit_schedules import lock_for_edit

COMING_MOST: Final = 200
PAST_KEPT: Final = 300


async def create_override(
    tx: Tx,
    principal: Principal,
    schedule: UUID,
    channel: str,
    starts_at: Instant,
    ends_at: Instant,
) -> OnCallOverrideRow:
    """Creates an override.

    Raises:
        Refused not_found, forbidden, invalid with its field, and override_quota if `COMING_MOST`
        overrides have not ended.
    """
    home = await lock_for_edit(tx, principal, schedule)
    wrong = override_fault(starts_at, ends_at)
    if wrong is not None:
        raise Refused("invalid", *wrong)
    given = [RequestedTarget("channel_id", TargetKind.CHANNEL, channel, or_person=True)]
    (held,) = await lock_targets(tx, home.org, home.project, given)
    row = await write_override(tx, home, held.key, starts_at, ends_at)
    await audit(tx, principal, row.org, "oncall_override.create", _target(row))
    return row


async def write_override(
    tx: Tx, home: ScheduleRow, channel: int, starts_at: Instant, ends_at: Instant
) -> OnCallOverrideRow:
    """Writes an override of a locked schedule.

    Raises:
        Refused override_quota.
    """
    if await oncall_overrides.count_coming(tx, home.org, home.id) >= COMING_MOST:
        raise Refused("override_quota")
    await oncall_overrides.purge_oldest_past(tx, home.org, home.id, PAST_KEPT - 1)
    uid = uuid7()
    await oncall_overrides.insert_override(tx, home.org, home.id, uid, channel, starts_at, ends_at)
    await oncall_schedules.look_at_hand_off_again(tx, home)
    row = await oncall_overrides_queries.select_override(tx, uid)
    assert row is not None, "the new row is missing"
    return row


async def delete_override(tx: Tx, principal: Principal, override: UUID) -> None:
    """Deletes an override.

    Raises:
        Refused not_found, forbidden.
    """
    schedule = await oncall_overrides.select_schedule_of(tx, override)
    if schedule is None:
        raise Refused(NOT_FOUND)
    home = await lock_for_edit(tx, principal, schedule)
    row = await oncall_overrides_queries.select_override(tx, override)
    if row is None:
        raise Refused(NOT_FOUND)
    await oncall_overrides.delete_override(tx, row)
    await oncall_schedules.look_at_hand_off_again(tx, home)
    await audit(tx, principal, row.org, "oncall_override.delete", _target(row))


def _target(row: OnCallOverrideRow) -> str:
    return (
        f"oncall_override:{row.uid} oncall_schedule:{row.schedule_uid} "
        f"channel:{row.channel_uid} {to_text(row.starts_at)} to {to_text(row.ends_at)}"
    )
