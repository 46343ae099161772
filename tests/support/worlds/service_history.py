"""Services with a history: their sealed time as the sealer writes it, by hour and by day."""

from collections import Counter
from collections.abc import Callable
from uuid import UUID

from uuid_utils.compat import uuid7

from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.engine.pools import Tx
from leadline.storage.objectives.transactions.set_service_objective import put_target
from leadline.storage.services.rows import ServiceRow
from leadline.storage.services.rules.service_health import Durations
from leadline.storage.services.tables.services import select_service
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from leadline.storage.services.transactions.declare_service import DeclarationDraft, declare
from tests.support.app.cast import Api

GOOD = Durations(good_us=HOUR, healthy_us=HOUR)
LOST = Durations(unknown_us=HOUR, health_unknown_us=HOUR)
PLANNED = Durations(excluded_us=HOUR)
_US = (
    "good_us, bad_us, unknown_us, excluded_us, healthy_us, degraded_us, down_us, health_unknown_us"
)
_INSERT = f"""
insert into {{table}} (org, service, start, epoch, minutes, {_US})
values (%(org)s, %(service)s, at(%(start)s), 1, %(minutes)s, %(good)s, %(bad)s, %(unknown)s,
  %(excluded)s, %(healthy)s, %(degraded)s, %(down)s, %(health_unknown)s)
"""


def down(minutes: int) -> Durations:
    """Returns an hour with these minutes down."""
    bad = minutes * MINUTE
    return Durations(good_us=HOUR - bad, bad_us=bad, healthy_us=HOUR - bad, down_us=bad)


async def lived(
    api: Api,
    name: str,
    *sli: UUID,
    hours: int = 0,
    was: Callable[[int], Durations] = lambda ago: GOOD,
    objective: float | None = None,
    window: str = "30d",
    **given: object,
) -> ServiceRow:
    """Creates a service that is declared before its history, which ends now. `was` returns an hour
    by its distance from now, beginning with 1.
    """
    async with api.pool.transaction("lived") as tx:
        draft = ServiceDraft(name=name, **given)  # type: ignore[arg-type]
        uid = (await create_service(tx, api.editor, api.project, draft)).uid
        if objective is not None:
            await put_target(tx, api.editor, api.project, uid, window, objective)
    if sli or hours:
        async with api.pool.transaction("lived_declared") as tx:
            declared = DeclarationDraft(expected_revision=0, monitors=sli, sli=sli)
            await declare(tx, api.editor, api.project, uid, declared, 30)
    async with api.pool.transaction("lived_sealed") as tx:
        row = await select_service(tx, uid)
        assert row is not None
        if hours:
            await _seal(tx, row, hours, was)
        row = await select_service(tx, uid)
        assert row is not None
        return row


async def _seal(tx: Tx, row: ServiceRow, hours: int, was: Callable[[int], Durations]) -> None:
    end = Instant(tx.now - tx.now % HOUR)
    start = Instant(end - hours * HOUR)
    key = {"org": row.org, "service": row.id}
    for table in ("service_revisions", "service_epochs"):
        columns = "effective_at = at(%(start)s)"
        if table == "service_revisions":
            columns += ", governs_from = at(%(start)s)"
        await tx.execute(
            f"update {table} set {columns} where org = %(org)s and service = %(service)s",
            start=start,
            **key,
        )
    known = await tx.value(
        "select count(*) from service_epochs where org = %(org)s and service = %(service)s", **key
    )
    if not known:
        await tx.execute(
            "insert into service_epochs (org, service, seq, uid, revision, effective_at, "
            "snapshot_hash, members) values (%(org)s, %(service)s, 1, %(uid)s, 1, at(%(start)s), "
            "'', 0)",
            uid=uuid7(),
            start=start,
            **key,
        )
    await tx.execute(
        "update services set materialization_start = at(%(start)s), sealed_through = at(%(end)s) "
        "where org = %(org)s and id = %(service)s",
        start=start,
        end=end,
        **key,
    )
    days: dict[int, Durations] = {}
    many: Counter[int] = Counter()
    for ago in range(hours, 0, -1):
        at = end - ago * HOUR
        day = at - at % DAY
        days[day] = days.get(day, Durations()) + was(ago)
        many[day] += 60
        await _insert(tx, "service_hours", row, at, 60, was(ago))
        if ago <= 24:
            await _insert_run(tx, row, Instant(at), was(ago))
    for day, durations in days.items():
        await _insert(tx, "service_days", row, day, many[day], durations)


async def _insert(
    tx: Tx, table: str, row: ServiceRow, start: int, minutes: int, durations: Durations
) -> None:
    await tx.execute(
        _INSERT.format(table=table),
        org=row.org,
        service=row.id,
        start=start,
        minutes=minutes,
        good=durations.good_us,
        bad=durations.bad_us,
        unknown=durations.unknown_us,
        excluded=durations.excluded_us,
        healthy=durations.healthy_us,
        degraded=durations.degraded_us,
        down=durations.down_us,
        health_unknown=durations.health_unknown_us,
    )


async def _insert_run(tx: Tx, row: ServiceRow, start: Instant, hour: Durations) -> None:
    """Inserts the minutes of an hour, all with equal durations."""
    await tx.execute(
        f"insert into service_minutes (org, service, from_at, until_at, epoch, {_US}) values "
        "(%(org)s, %(service)s, at(%(start)s), at(%(until)s), 1, %(good)s, %(bad)s, %(unknown)s, "
        "%(excluded)s, %(healthy)s, %(degraded)s, %(down)s, %(health_unknown)s)",
        org=row.org,
        service=row.id,
        start=start,
        until=Instant(start + HOUR),
        good=hour.good_us // 60,
        bad=hour.bad_us // 60,
        unknown=hour.unknown_us // 60,
        excluded=hour.excluded_us // 60,
        healthy=hour.healthy_us // 60,
        degraded=hour.degraded_us // 60,
        down=hour.down_us // 60,
        health_unknown=hour.health_unknown_us // 60,
    )
