-- The failures of a monitor since its last success, at most 1 000, and the instant of the first of
-- them. Reads the results that are not packed from the newest one back, as far as needed. A piece
-- without a success is not decoded to find the last one.
create function failure_run(
  of_org integer, of_monitor integer, out failures bigint, out first_at timestamptz)
language plpgsql stable parallel safe
as $$
declare
  fence constant timestamptz := (select packed_through from packing);
  most constant integer := 1000;
  result record;
  packed record;
begin
  failures := 0;
  for result in
    select h.ts, h.up from heartbeats h
    where h.org = of_org and h.monitor = of_monitor and h.ts >= fence
    order by h.ts desc limit most
  loop
    if result.up then
      return;
    end if;
    failures := failures + 1;
    first_at := result.ts;
  end loop;
  select count(*) as failures, min(p.ts) as first_at into packed from (
    select p.ts from packed_heartbeats_in(of_org, of_monitor, coalesce(
      (select r.ts from restored_heartbeats r
        where r.org = of_org and r.monitor = of_monitor and true = any(r.piece_up) and r.up
          and r.piece_from < fence
        order by r.piece_from desc, r.ts desc limit 1),
      '-infinity') + interval '1 microsecond', fence) p
    where failures < most
    order by p.ts desc limit most - failures) p;
  failures := failures + packed.failures;
  first_at := coalesce(packed.first_at, first_at);
end
$$;

-- For processes of earlier versions.
create or replace function failures_in_row(of_org integer, of_monitor integer)
returns bigint
language sql stable parallel safe
as $$
select failures from failure_run(of_org, of_monitor)
$$;

-- Whether a newer result of the monitor is stored. A query of its own has a new snapshot, at READ
-- COMMITTED.
create function is_late(of_org integer, of_monitor integer, of_ts timestamptz)
returns boolean
language plpgsql volatile
as $$
begin
  return exists (select from heartbeats h
    where h.org = of_org and h.monitor = of_monitor and h.ts > of_ts);
end $$;
