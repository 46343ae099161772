"""Instant at which each kind of work is due, for all loops of a process in one statement."""

from collections.abc import Mapping, Sequence
from typing import Final

from ...core.instant import Instant
from ...engine.pools import Tx
from ...notifications.tables.outbox_claims import ACTIVE
from ..rules.work import Work
from ..tables.work_queues import HELD

# First instant at which `is_delivery_due` can become true.
_DELIVERY: Final = f"""
({ACTIVE} select min(greatest(a.due_at, d.backoff_until)) from active a
  join destinations d on d.org = a.org and d.id = a.destination
  left join notification_channels c on c.org = d.org and c.id = d.channel
  left join webhooks w on w.org = d.org and w.id = d.webhook
 where coalesce(c.enabled, w.enabled, true))
"""
# Burn rules of monitors are evaluated at this interval.
_NEXT_BURN: Final = """
(select min(coalesce(b.evaluated_at + %(burns_us)s * interval '1 microsecond', 'epoch'))
 from burn_rules b join monitor_targets t
   on t.org = b.org and t.monitor = b.monitor and t."window" = b."window"
 where b.monitor is not null and t.burn_enabled)
"""
_SHARDS: Final = "any(array(select id from shards where region = any(%(regions)s::text[])))"
# Batches that this process holds are not due for it: the prober knows them.
_CLAIMABLE: Final = f"""
(select 'epoch'::timestamptz from run_batches s
 where s.shard = {_SHARDS} and s.kind = 'run' and s.published and s.claim_until > at(%(now)s)
   and (s.holder is null or not {HELD.format(row="s")}) limit 1)
"""
_JOB: Final = f"""
(select min(j.due_at) from jobs j
 where j.shard = {_SHARDS} and j.claim_until > at(%(now)s)
   and (j.holder is null or not {HELD.format(row="j")}))
"""
_CHECK_TEST: Final = """
(select min(created_at) from check_tests
 where region = any(%(regions)s::text[]) and holder is null and claim_until > at(%(now)s))
"""
# A kind that is due as long as a row exists has the instant 'epoch'. Status changes come and go: an
# index forgets deleted rows sooner than the table.
_DUE: Final[Mapping[Work, str]] = {
    Work.DELIVERIES: _DELIVERY,
    Work.RESETS: "(select min(due_at) from reset_requests)",
    Work.INVITATIONS: """(select min(mail_due_at) from invitations
      where mail_due_at is not null and expires_at > at(%(now)s))""",
    Work.ALERTS: """least(
      (select 'epoch'::timestamptz from status_changes order by org, id limit 1),
      (select min(next_check_at) from outages where ended_at is null),
      (select min(escalate_at) from incidents where escalate_at is not null),
      (select min(starts_at) from mutes where awaits_start))""",
    Work.EVALUATIONS: f"least((select min(due_at) from service_alerting), {_NEXT_BURN})",
    # Services are sealed up to the fence of their monitors, which moves without windows too.
    Work.SEALS: """least((select 'epoch'::timestamptz from run_batches limit 1),
      (select 'epoch'::timestamptz from services limit 1))""",
    Work.SERVICES: "(select 'epoch'::timestamptz from services limit 1)",
    Work.REPAIRS: "(select min(due_at) from repairs)",
    Work.COMPOSITES: """least((select min(due_at) from composite_wakeups),
      (select min(first_due) from run_batches
       where kind = 'composite' and published and claim_until > at(%(now)s)))""",
    Work.OPERATIONS: """(select 'epoch'::timestamptz from operations
      where state in ('running', 'applying', 'editing') limit 1)""",
    Work.JOBS: f"least({_JOB}, {_CHECK_TEST}, {_CLAIMABLE})",
    Work.CANARIES: """least((select 'epoch'::timestamptz from canary_runs limit 1),
      (select min(first_due) from run_batches where kind = 'canary' and published),
      (select min(j.due_at) from jobs j join monitors m on m.org = j.org and m.id = j.monitor
       where m.type = 'async_canary'))""",
    Work.SCHEDULE: """(select min(least(ends_at, cancel_effective_at)) from maintenances
      where resumed_at is null and archived_at is null)""",
}
_SELECT: Final = "select " + ",\n".join(_DUE.values())


async def select_due_work(
    tx: Tx, regions: Sequence[str], burns_us: int
) -> Mapping[Work, Instant | None]:
    """Returns when each kind of work is due, None if no known instant makes it due.

    Args:
        regions: regions that this process probes in, for jobs.
        burns_us: interval of the evaluation of a monitor's burn rules.
    """
    row = await tx.row(_SELECT, regions=list(regions), burns_us=burns_us, now=tx.now)
    assert row is not None, "a select without a table answers with one row"
    return dict(zip(_DUE, row, strict=True))
