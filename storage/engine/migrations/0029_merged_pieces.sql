-- Pieces of slow monitors are merged by week, and a monitor that cannot be packed stops no other one.
alter table packing
  -- The weeks before this instant are merged.
  add column merged_through timestamptz not null default 'epoch',
  -- Monitors up to this one are merged in the week that begins at merged_through.
  add column merged_org integer not null default 0,
  add column merged_monitor integer not null default 0;

-- Days of monitors that could not be packed as usual, and have a piece for each row. Weeks whose
-- pieces could not be merged have their first day.
create table packing_failures (
  org integer not null,
  monitor integer not null,
  day timestamptz not null,
  cause text not null,
  at timestamptz not null,
  primary key (org, monitor, day)
);

-- No piece is longer than a week, so the lower bound of piece_from needs no other piece.
create or replace function packed_heartbeats_in(
  of_org integer, of_monitor integer, since_at timestamptz, before_at timestamptz)
returns table (ts timestamptz, latency_ms integer, code integer, dns_us integer,
  connect_us integer, tls_us integer, first_byte_us integer, up boolean, msg text,
  failed_condition integer, measured text)
language sql stable parallel safe
as $$
select r.ts, r.latency_ms, r.code, r.dns_us, r.connect_us, r.tls_us, r.first_byte_us, r.up,
  r.msg, r.failed_condition, r.measured
from restored_heartbeats r
where since_at < (select packed_through from packing)
  and r.org = of_org and r.monitor = of_monitor
  and r.piece_from > since_at - interval '7 days'
  and r.piece_from < least(before_at, (select packed_through from packing))
  and r.piece_until >= since_at and r.ts >= since_at and r.ts < before_at
$$;

create or replace function packed_runs_in(
  of_org integer, of_monitor integer, since_at timestamptz, before_at timestamptz)
returns table (due_at timestamptz, settled_at timestamptz, verdict verdict, reason text)
language sql stable parallel safe
as $$
select r.due_at, r.settled_at, r.verdict, r.reason
from restored_runs r
where since_at < (select packed_through from packing)
  and r.org = of_org and r.monitor = of_monitor
  and r.piece_from > since_at - interval '7 days'
  and r.piece_from < least(before_at, (select packed_through from packing))
  and r.piece_until >= since_at and r.due_at >= since_at and r.due_at < before_at
$$;
