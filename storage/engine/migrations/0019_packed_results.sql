-- Packed results: arrays by column of up to 960 rows of one monitor. The form is described in
-- storage/results/tables/packed_results.py. No loop packs results yet.
create table packed_heartbeats (
  org integer not null,
  monitor integer not null,
  -- Instants of the first and the last row.
  from_at timestamptz not null,
  until_at timestamptz not null,
  results integer not null,
  checksum bigint not null,
  origin timestamptz not null,
  step_us bigint not null,
  skipped integer[],
  state smallint[],
  state_up boolean[] not null,
  state_code integer[] not null,
  state_msg text[] not null,
  state_failed_condition integer[] not null,
  state_measured text[] not null,
  away_base bigint, away_low smallint[], away_mid "char"[], away_top integer[],
  latency_base bigint, latency_low smallint[], latency_mid "char"[], latency_top integer[],
  dns_base bigint, dns_low smallint[], dns_mid "char"[], dns_top integer[],
  connect_base bigint, connect_low smallint[], connect_mid "char"[], connect_top integer[],
  tls_base bigint, tls_low smallint[], tls_mid "char"[], tls_top integer[],
  first_byte_base bigint, first_byte_low smallint[], first_byte_mid "char"[], first_byte_top integer[],
  primary key (org, monitor, from_at),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);

create table packed_runs (
  org integer not null,
  monitor integer not null,
  -- Instants of the first and the last row.
  from_at timestamptz not null,
  until_at timestamptz not null,
  results integer not null,
  checksum bigint not null,
  origin timestamptz not null,
  step_us bigint not null,
  skipped integer[],
  state smallint[],
  state_verdict verdict[] not null,
  state_reason text[] not null,
  away_base bigint, away_low smallint[], away_mid "char"[], away_top integer[],
  settled_base bigint, settled_low smallint[], settled_mid "char"[], settled_top integer[],
  primary key (org, monitor, from_at),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);

-- The rows of packed pieces. A reader gives a range of piece_from and piece_until, so that other
-- pieces are not decoded.
create view restored_heartbeats as
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
  p.state_measured[x.k] as measured, p.from_at as piece_from, p.until_at as piece_until
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

create view restored_runs as
select p.org, p.monitor, x.due_at, x.due_at + x.settled * interval '1 microsecond' as settled_at,
  p.state_verdict[x.k] as verdict, p.state_reason[x.k] as reason,
  p.from_at as piece_from, p.until_at as piece_until
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
