-- A result of a run and the verdict of its window can share a row of heartbeats. The window then has no
-- row in expected_runs. The view `ledger` has the windows of both forms. Null in all other rows.
-- Recorders of earlier versions lock a fence, then write heartbeats and expected_runs; sealers read
-- their batches, and write expected_runs. None of them is in between with these locks.
lock table shards in exclusive mode;
lock table run_batches in access exclusive mode;
lock table expected_runs in share row exclusive mode;
alter table heartbeats
  -- Distance from the due instant of the window to the result, in µs, at most a minute.
  add column after_due_us integer,
  -- Distance from the result to the instant at which the window was settled, in µs.
  add column settled_after_us integer;

-- One row for each settled window that is not read from a piece. `at` is the instant of the row in its
-- table: at the due instant, or up to a minute later. A reader bounds it, so that it reads few rows.
create view ledger as
select r.org, r.monitor, r.due_at, r.settled_at, r.verdict, r.reason, r.due_at as at
from expected_runs r
union all
select h.org, h.monitor, h.ts - h.after_due_us * interval '1 microsecond',
  h.ts + h.settled_after_us * interval '1 microsecond', 'covered', null, h.ts
from heartbeats h where h.after_due_us is not null;

-- The rows of `ledger` of a monitor that are due in [since_at, before_at). The planner inlines it.
create function ledger_in(
  of_org integer, of_monitor integer, since_at timestamptz, before_at timestamptz)
returns table (org integer, monitor integer, due_at timestamptz, settled_at timestamptz,
  verdict verdict, reason text, at timestamptz)
language sql stable parallel safe
as $$
select r.org, r.monitor, r.due_at, r.settled_at, r.verdict, r.reason, r.at
from ledger r
where r.org = of_org and r.monitor = of_monitor
  and r.at >= since_at and r.at < before_at + interval '1 minute'
  and r.due_at >= since_at and r.due_at < before_at
$$;

-- The row of one window, none if it is not settled.
create function verdict_of(of_org integer, of_monitor integer, of_due timestamptz)
returns table (settled_at timestamptz, verdict verdict, reason text)
language sql stable parallel safe
as $$
select r.settled_at, r.verdict, r.reason
from ledger r
where r.org = of_org and r.monitor = of_monitor and r.due_at = of_due
  and r.at >= of_due and r.at <= of_due + interval '1 minute'
$$;

-- The same as a test with a snapshot of its own, for a statement that has locked the state before.
create function is_settled(of_org integer, of_monitor integer, of_due timestamptz)
returns boolean
language plpgsql volatile
as $$
begin
  return exists (select from verdict_of(of_org, of_monitor, of_due));
end $$;

-- A window whose verdict is in the row of its result gets no row, also by a process of an earlier
-- version. Whoever stores such a result has locked the state FOR NO KEY UPDATE. Other writers wait for
-- it here, if they have not locked the state as strongly. FOR SHARE lets decisions about outages
-- through. Each query of the function has a new snapshot, at READ COMMITTED.
create function skip_settled_window() returns trigger language plpgsql as $$
begin
  -- A withheld window has no run. Windows of the other types have rows of their own. They take no
  -- lock, which keeps its order.
  if new.verdict <> 'withheld' then
    perform from monitor_states s join monitors m on m.org = s.org and m.id = s.monitor
      and m.type not in ('push', 'composite')
    where s.org = new.org and s.monitor = new.monitor for share of s;
  end if;
  if exists (select from heartbeats h where h.org = new.org and h.monitor = new.monitor
      and h.ts >= new.due_at and h.ts <= new.due_at + interval '1 minute'
      and h.ts - h.after_due_us * interval '1 microsecond' = new.due_at) then
    return null;
  end if;
  return new;
end $$;
create trigger skip_settled_window before insert on expected_runs
  for each row execute function skip_settled_window();

-- A process of an earlier version that was suspended can continue later than any bound. Its packer
-- would leave out the verdicts in rows of results, so its step fails as a whole.
create function refuse_pieces_without_verdicts() returns trigger language plpgsql as $$
begin
  if coalesce(current_setting('leadline.packs_verdicts', true), '') <> 'yes' then
    raise check_violation using message =
      'this process is of an earlier version, which would pack results without their verdicts';
  end if;
  return null;
end $$;
create trigger refuse_pieces_without_verdicts before insert on packed_runs
  for each statement execute function refuse_pieces_without_verdicts();

create or replace function runs_in(
  of_org integer, of_monitor integer, since_at timestamptz, before_at timestamptz)
returns table (due_at timestamptz, settled_at timestamptz, verdict verdict, reason text)
language sql stable parallel safe
as $$
select r.due_at, r.settled_at, r.verdict, r.reason
from ledger_in(of_org, of_monitor, since_at, before_at) r
where r.due_at >= (select packed_through from packing)
  and r.at >= (select packed_through from packing)
union all
select p.due_at, p.settled_at, p.verdict, p.reason
from packed_runs_in(of_org, of_monitor, since_at, before_at) p
$$;
