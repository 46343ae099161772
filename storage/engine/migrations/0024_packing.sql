-- Packing of closed days, and functions that read results whether they are packed or not.

-- One row. Readers never wait for its lock.
create table packing (
  id boolean primary key default true check (id),
  -- Results and ledger rows before this instant are read from their pieces only. Rows of heartbeats
  -- and expected_runs before it have pieces, and are dropped with their partitions.
  packed_through timestamptz not null,
  -- Since this instant no result was deleted by retention. Null before the first step of packing.
  kept_from timestamptz,
  -- Monitors up to this one have the pieces of the day that begins at packed_through.
  org integer not null default 0,
  monitor integer not null default 0,
  -- When packed_through moved.
  moved_at timestamptz not null
);
insert into packing (packed_through, moved_at) values ('epoch', 'epoch');

-- Rows that were stored late in a day that may have pieces already, but is not read from them yet.
-- The packer packs the day of the monitor again and deletes the row. A second late row must not
-- share the row of the first, because the packer may be deleting it.
create table late_writes (
  id bigint generated always as identity primary key,
  org integer not null,
  monitor integer not null,
  -- Start of the day.
  day timestamptz not null
);

-- The pieces of an archived monitor stay as long as its row of deleted_monitors, because late
-- results of other members restate the figures of its services. The transactions that delete
-- monitors and archived monitors delete pieces.
alter table packed_heartbeats drop constraint packed_heartbeats_org_monitor_fkey;
alter table packed_runs drop constraint packed_runs_org_monitor_fkey;

create index packed_heartbeats_from on packed_heartbeats using brin (from_at);
create index packed_runs_from on packed_runs using brin (from_at);

create or replace view restored_heartbeats as
select p.org, p.monitor, p.origin + (p.step_us * (u.i - 1 + coalesce(u.skipped, 0))
      + p.away_base
      + case when p.away_low is not null then u.away_low::integer + 32768
          + (coalesce(u.away_mid::integer, 0) << 16)
        when p.away_mid is not null then u.away_mid::integer else 0 end
      + (coalesce(u.away_top, 0)::bigint << case when p.away_low is null then 7 else 23 end)
      ) * interval '1 microsecond' as ts,
  (x.latency + (coalesce(x.dns, 0) + coalesce(x.connect, 0) + coalesce(x.tls, 0)
    + coalesce(x.first_byte, 0)) / 1000)::integer as latency_ms,
  p.state_code[x.k] as code, x.dns::integer as dns_us, x.connect::integer as connect_us,
  x.tls::integer as tls_us, x.first_byte::integer as first_byte_us, p.state_up[x.k] as up,
  p.state_msg[x.k] as msg, p.state_failed_condition[x.k] as failed_condition,
  p.state_measured[x.k] as measured, p.from_at as piece_from, p.until_at as piece_until,
  p.state_up as piece_up, p.state_msg as piece_messages
from packed_heartbeats p,
  unnest(array_fill(0::smallint, array[p.results]), p.skipped, p.state,
    p.away_low, p.away_mid, p.away_top, p.latency_low, p.latency_mid, p.latency_top,
    p.dns_low, p.dns_mid, p.dns_top, p.connect_low, p.connect_mid, p.connect_top,
    p.tls_low, p.tls_mid, p.tls_top, p.first_byte_low, p.first_byte_mid, p.first_byte_top)
    with ordinality as u(zero, skipped, state,
    away_low, away_mid, away_top, latency_low, latency_mid, latency_top, dns_low, dns_mid,
    dns_top, connect_low, connect_mid, connect_top, tls_low, tls_mid, tls_top,
    first_byte_low, first_byte_mid, first_byte_top, i),
  lateral (select coalesce(u.state, 1) as k,
    p.latency_base
      + case when p.latency_low is not null then u.latency_low::integer + 32768
          + (coalesce(u.latency_mid::integer, 0) << 16)
        when p.latency_mid is not null then u.latency_mid::integer else 0 end
      + (coalesce(u.latency_top, 0)::bigint << case when p.latency_low is null then 7 else 23 end) as latency,
    p.dns_base
      + case when p.dns_low is not null then u.dns_low::integer + 32768
          + (coalesce(u.dns_mid::integer, 0) << 16)
        when p.dns_mid is not null then u.dns_mid::integer else 0 end
      + (coalesce(u.dns_top, 0)::bigint << case when p.dns_low is null then 7 else 23 end) as dns,
    p.connect_base
      + case when p.connect_low is not null then u.connect_low::integer + 32768
          + (coalesce(u.connect_mid::integer, 0) << 16)
        when p.connect_mid is not null then u.connect_mid::integer else 0 end
      + (coalesce(u.connect_top, 0)::bigint << case when p.connect_low is null then 7 else 23 end) as connect,
    p.tls_base
      + case when p.tls_low is not null then u.tls_low::integer + 32768
          + (coalesce(u.tls_mid::integer, 0) << 16)
        when p.tls_mid is not null then u.tls_mid::integer else 0 end
      + (coalesce(u.tls_top, 0)::bigint << case when p.tls_low is null then 7 else 23 end) as tls,
    p.first_byte_base
      + case when p.first_byte_low is not null then u.first_byte_low::integer + 32768
          + (coalesce(u.first_byte_mid::integer, 0) << 16)
        when p.first_byte_mid is not null then u.first_byte_mid::integer else 0 end
      + (coalesce(u.first_byte_top, 0)::bigint << case when p.first_byte_low is null then 7 else 23 end) as first_byte) x;

create or replace view restored_runs as
select p.org, p.monitor, x.due_at, x.due_at + x.settled * interval '1 microsecond' as settled_at,
  p.state_verdict[x.k] as verdict, p.state_reason[x.k] as reason,
  p.from_at as piece_from, p.until_at as piece_until,
  p.state_verdict as piece_verdicts
from packed_runs p,
  unnest(array_fill(0::smallint, array[p.results]), p.skipped, p.state,
    p.away_low, p.away_mid, p.away_top, p.settled_low, p.settled_mid, p.settled_top)
    with ordinality as u(zero, skipped, state,
    away_low, away_mid, away_top, settled_low, settled_mid, settled_top, i),
  lateral (select coalesce(u.state, 1) as k, p.origin + (p.step_us * (u.i - 1 + coalesce(u.skipped, 0))
      + p.away_base
      + case when p.away_low is not null then u.away_low::integer + 32768
          + (coalesce(u.away_mid::integer, 0) << 16)
        when p.away_mid is not null then u.away_mid::integer else 0 end
      + (coalesce(u.away_top, 0)::bigint << case when p.away_low is null then 7 else 23 end)
      ) * interval '1 microsecond' as due_at,
    p.settled_base
      + case when p.settled_low is not null then u.settled_low::integer + 32768
          + (coalesce(u.settled_mid::integer, 0) << 16)
        when p.settled_mid is not null then u.settled_mid::integer else 0 end
      + (coalesce(u.settled_top, 0)::bigint << case when p.settled_low is null then 7 else 23 end) as settled) x;

-- The rows of one monitor in [since_at, before_at). The planner inlines these functions. No piece
-- is longer than a day, so the lower bound of piece_from needs no other piece.
create function packed_heartbeats_in(
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
  and r.piece_from > since_at - interval '1 day'
  and r.piece_from < least(before_at, (select packed_through from packing))
  and r.piece_until >= since_at and r.ts >= since_at and r.ts < before_at
$$;

create function heartbeats_in(
  of_org integer, of_monitor integer, since_at timestamptz, before_at timestamptz)
returns table (ts timestamptz, latency_ms integer, code integer, dns_us integer,
  connect_us integer, tls_us integer, first_byte_us integer, up boolean, msg text,
  failed_condition integer, measured text)
language sql stable parallel safe
as $$
select h.ts, h.latency_ms, h.code, h.dns_us, h.connect_us, h.tls_us, h.first_byte_us, h.up,
  h.msg, h.failed_condition, h.measured
from heartbeats h
where h.org = of_org and h.monitor = of_monitor
  and h.ts >= since_at and h.ts < before_at
  and h.ts >= (select packed_through from packing)
union all
select p.ts, p.latency_ms, p.code, p.dns_us, p.connect_us, p.tls_us, p.first_byte_us, p.up,
  p.msg, p.failed_condition, p.measured
from packed_heartbeats_in(of_org, of_monitor, since_at, before_at) p
$$;

create function packed_runs_in(
  of_org integer, of_monitor integer, since_at timestamptz, before_at timestamptz)
returns table (due_at timestamptz, settled_at timestamptz, verdict verdict, reason text)
language sql stable parallel safe
as $$
select r.due_at, r.settled_at, r.verdict, r.reason
from restored_runs r
where since_at < (select packed_through from packing)
  and r.org = of_org and r.monitor = of_monitor
  and r.piece_from > since_at - interval '1 day'
  and r.piece_from < least(before_at, (select packed_through from packing))
  and r.piece_until >= since_at and r.due_at >= since_at and r.due_at < before_at
$$;

create function runs_in(
  of_org integer, of_monitor integer, since_at timestamptz, before_at timestamptz)
returns table (due_at timestamptz, settled_at timestamptz, verdict verdict, reason text)
language sql stable parallel safe
as $$
select h.due_at, h.settled_at, h.verdict, h.reason
from expected_runs h
where h.org = of_org and h.monitor = of_monitor
  and h.due_at >= since_at and h.due_at < before_at
  and h.due_at >= (select packed_through from packing)
union all
select p.due_at, p.settled_at, p.verdict, p.reason
from packed_runs_in(of_org, of_monitor, since_at, before_at) p
$$;

-- The newest result of a monitor before an instant. A monitor that was paused for days has it in a
-- piece.
create function newest_heartbeat(of_org integer, of_monitor integer, before_at timestamptz)
returns table (ts timestamptz, latency_ms integer, code integer, up boolean, msg text)
language sql stable parallel safe
as $$
select * from (
  (select h.ts, h.latency_ms, h.code, h.up, h.msg from heartbeats h
  where h.org = of_org and h.monitor = of_monitor
    and h.ts >= (select packed_through from packing) and h.ts < before_at
  order by h.ts desc limit 1)
  union all
  (select r.ts, r.latency_ms, r.code, r.up, r.msg from restored_heartbeats r
  where not exists (select from heartbeats h where h.org = of_org and h.monitor = of_monitor
      and h.ts >= (select packed_through from packing) and h.ts < before_at)
    and r.org = of_org and r.monitor = of_monitor
    and r.piece_from < least(before_at, (select packed_through from packing)) and r.ts < before_at
  order by r.piece_from desc, r.ts desc limit 1)) newest
limit 1
$$;

-- The number of consecutive failures up to now, at most 1 000. A piece without a success is not
-- decoded to find the last one.
create function failures_in_row(of_org integer, of_monitor integer)
returns bigint
language sql stable parallel safe
as $$
select count(*) from (
  select from heartbeats_in(of_org, of_monitor, coalesce(
    (select h.ts from heartbeats h where h.org = of_org and h.monitor = of_monitor and h.up
      and h.ts >= (select packed_through from packing) order by h.ts desc limit 1),
    (select r.ts from restored_heartbeats r
      where r.org = of_org and r.monitor = of_monitor and true = any(r.piece_up) and r.up
        and r.piece_from < (select packed_through from packing)
      order by r.piece_from desc, r.ts desc limit 1),
    '-infinity') + interval '1 microsecond', 'infinity')
  limit 1000) failures
$$;
