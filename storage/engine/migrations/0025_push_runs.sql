-- The longest run of a push monitor in seconds, from its /start to its result. 0 is no limit.
alter table monitors add column max_run_seconds integer not null default 0;

-- Runs of the jobs behind push monitors.
create table push_runs (
  org integer not null,
  monitor integer not null,
  -- The run id of the sender, empty without one.
  run text not null,
  started_at timestamptz not null,
  -- When the run has taken too long, by the limit at its start.
  deadline_at timestamptz,
  ended_at timestamptz,
  outcome text check (outcome in ('succeeded', 'failed', 'replaced')),
  -- The exit status of the job.
  code integer,
  -- Whether the run kept its limit. Null until that is decided.
  judged text check (judged in ('ended', 'overrun', 'not_listening', 'paused', 'maintenance')),
  primary key (org, monitor, started_at, run),
  check ((ended_at is null) = (outcome is null)),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
create unique index push_runs_open on push_runs (org, monitor, run) where ended_at is null;
create index push_runs_undecided on push_runs (deadline_at)
  where judged is null and deadline_at is not null;
-- The newest result of each run id that ended no run: its /start can be handled after it.
create table push_run_ends (
  org integer not null,
  monitor integer not null,
  run text not null,
  ended_at timestamptz not null,
  outcome text not null check (outcome in ('succeeded', 'failed')),
  code integer,
  primary key (org, monitor, run),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
