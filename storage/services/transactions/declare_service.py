"""Declaration of a service: a permanent revision that governs from the next minute.

Invariants: the caller knows the revision that it replaces. Members belong to the project and are
not deleted during the transaction; deletion of a monitor locks the project too. Only the first
revision can reconstruct the past, and only as far as figures can be repaired.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.instant import MINUTE, Instant, to_text
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...monitors.tables.monitors import lock_shared_monitors
from ...results.queries.longest_freshness import select_longest_hold_of
from ...results.rules.repair_range import TOO_OLD, earliest_repairable
from ...scheduling.queries import shards
from ...scheduling.tables import shards as schedules
from ..queries import service_revisions
from ..rows import ServiceRow
from ..rules.epoch import Revision, epochs, next_minute
from ..rules.service_declaration import members_faults, policies_faults, sli_faults
from ..rules.service_health import Policies
from ..tables import service_revisions as declarations
from ..tables import services
from .lock_service import demand_service, expect_unmanaged, lock_home, target_of, written

RETROACTIVE: Final = "retroactive_not_first_revision"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclarationDraft:
    """Requested declaration. `expected_revision` is the replaced revision, 0 for the first."""

    expected_revision: int
    monitors: Sequence[UUID]
    sli: Sequence[UUID]
    policies: Policies = field(default_factory=Policies)
    backfill_from: Instant | None = None


async def declare(
    tx: Tx,
    principal: Principal,
    project: UUID,
    service: UUID,
    draft: DeclarationDraft,
    raw_days: int,
) -> ServiceRow:
    """Declares a service. An equal declaration writes no revision.

    Raises:
        Refused not_found, forbidden, invalid with its field, sli_not_in_monitors,
        retroactive_not_first_revision, older_than_raw_retention, managed_by_file,
        revision_conflict.
    """
    home, _ = await lock_home(tx, principal, project)
    row = await demand_service(tx, principal, project, service)
    _check(draft)
    known = (await service_revisions.select_revisions(tx, [row.key]))[row.key]
    if draft.backfill_from is not None and (known or draft.expected_revision):
        raise Refused(RETROACTIVE)
    held = await lock_shared_monitors(tx, home.org, home.id, draft.monitors)
    if len(held) < len(draft.monitors):
        raise Refused("invalid", "monitors", "is not a monitor of this project")
    expect_unmanaged(principal, row)
    if draft.expected_revision != len(known):
        raise Refused("revision_conflict")
    effective_at = _effective_at(row, known, tx.now)
    policies = draft.policies
    hold_us = await select_longest_hold_of(
        tx,
        [MonitorKey((home.org, key)) for key in held.values()],
        policies.active_multiplier,
        policies.active_floor_us,
    )
    earliest = earliest_repairable(tx.now, raw_days, hold_us)
    backfill_from = _backfill(draft, tx.now, earliest)
    wanted = _revision(draft, held, len(known) + 1, effective_at, backfill_from)
    if known and _is_same_declaration(known[-1], wanted):
        return row
    await _write(tx, principal, row, [*known, wanted], backfill_from)
    return await written(tx, service)


def _effective_at(row: ServiceRow, known: Sequence[Revision], now: Instant) -> Instant:
    """Returns the next minute, or the seal or the start of the last revision if later.

    These can be later if the clock of another process is ahead.
    """
    before = [revision.effective_at for revision in known[-1:]]
    told = [] if row.sealed_through is None else [row.sealed_through]
    return max([next_minute(now), *before, *told])


def _check(draft: DeclarationDraft) -> None:
    for name, rule in (
        *members_faults(draft.monitors),
        *sli_faults(draft.sli),
        *policies_faults(draft.policies),
    ):
        raise Refused("invalid", name, rule)
    if not set(draft.sli) <= set(draft.monitors):
        raise Refused("sli_not_in_monitors")


def _backfill(draft: DeclarationDraft, now: Instant, earliest: Instant) -> Instant | None:
    """Returns the whole minute from which the past is reconstructed, None without backfill."""
    if draft.backfill_from is None:
        return None
    if draft.backfill_from > now:
        raise Refused("invalid", "backfill_from", "must not be in the future")
    if draft.backfill_from < earliest:
        fault = f"must not be before {to_text(earliest)}: older results are deleted"
        raise Refused(TOO_OLD, "backfill_from", fault)
    return Instant(draft.backfill_from - draft.backfill_from % MINUTE)


def _revision(
    draft: DeclarationDraft,
    held: dict[UUID, int],
    number: int,
    effective_at: Instant,
    backfill_from: Instant | None,
) -> Revision:
    return Revision(
        revision=number,
        uid=uuid7(),
        effective_at=effective_at,
        governs_from=effective_at if backfill_from is None else backfill_from,
        monitors=tuple(held[uid] for uid in draft.monitors),
        sli=tuple(held[uid] for uid in draft.sli),
        policies=draft.policies,
    )


def _is_same_declaration(one: Revision, other: Revision) -> bool:
    return (one.monitors, one.sli, one.policies) == (other.monitors, other.sli, other.policies)


async def _write(
    tx: Tx,
    principal: Principal,
    row: ServiceRow,
    revisions: Sequence[Revision],
    backfill_from: Instant | None,
) -> None:
    """Writes the last of `revisions`, which is new."""
    new = revisions[-1]
    author = principal.user if isinstance(principal.user, UUID) else None
    await declarations.insert_revision(tx, row.key, new, author, principal.label)
    if row.materialization_start is None:
        await services.begin_time(tx, row.key, new.effective_at, backfill_from)
    await _record_epochs(tx, row, revisions, new.effective_at)
    await services.touch_service(tx, row.key)
    said = f"revision={new.revision} monitors={len(new.monitors)} sli={len(new.sli)}"
    await audit(tx, principal, row.org, "service.declare", f"{target_of(row)} {said}")


async def _record_epochs(
    tx: Tx, row: ServiceRow, revisions: Sequence[Revision], through: Instant
) -> None:
    """Stores all epochs up to the new one, so that their numbers ascend in time."""
    members = {member for revision in revisions for member in revision.sli}
    terms = await schedules.select_terms_of(
        tx, [MonitorKey((row.org, member)) for member in members]
    )
    regions = {shard.id: shard.region for shard in await shards.select_shards(tx)}
    found = epochs(row.org, revisions, terms, regions, through)
    await declarations.put_epochs(tx, {row.key: found})
