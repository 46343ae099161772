-- Canaries are handed out one by one: one run of a monitor, so many of a region.

alter table run_batches drop constraint run_batches_kind_check;
alter table run_batches add constraint run_batches_kind_check
  check (kind in ('run', 'push', 'composite', 'canary'));
create index run_batches_canary on run_batches (shard, first_due) where kind = 'canary' and published;

-- A run that is under way. The keys are the bounds: a slot of a region is taken once, and so is a
-- monitor.
create table canary_runs (
  region text not null,
  slot integer not null check (slot > 0),
  org integer not null,
  monitor integer not null,
  -- Null for a run without a window.
  due_at timestamptz,
  holder uuid not null,
  -- Of an agent, which has no presence; a process holds its run for as long as it is there.
  lease_until timestamptz,
  began_at timestamptz not null,
  primary key (region, slot),
  unique (org, monitor)
);
