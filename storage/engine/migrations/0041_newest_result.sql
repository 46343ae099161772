-- The newest result of a monitor is the first of an ordered scan. With the bound of packing inside the
-- scan the planner expected one row for each monitor and partition, and read and sorted all of them.
create or replace function newest_heartbeat(of_org integer, of_monitor integer, before_at timestamptz)
returns table (ts timestamptz, latency_ms integer, code integer, up boolean, msg text)
language sql stable parallel safe as $$
select * from (
  (select n.* from (select h.ts, h.latency_ms, h.code, h.up, h.msg from heartbeats h
    where h.org = of_org and h.monitor = of_monitor and h.ts < before_at
    order by h.ts desc limit 1) n
  where n.ts >= (select packed_through from packing))
  union all
  (select r.ts, r.latency_ms, r.code, r.up, r.msg from restored_heartbeats r
  where not exists (select from heartbeats h where h.org = of_org and h.monitor = of_monitor
      and h.ts >= (select packed_through from packing) and h.ts < before_at)
    and r.org = of_org and r.monitor = of_monitor
    and r.piece_from < least(before_at, (select packed_through from packing)) and r.ts < before_at
  order by r.piece_from desc, r.ts desc limit 1)) newest
limit 1
$$;
