-- The heart: monitors and the terms of their schedules, what was due, what came of it, and what is
-- sealed. The partitioned tables carry no foreign keys: ATTACH would lock what they refer to.

-- A shard is the unit of scheduling and sealing: one region (or, where the database is sharded by
-- organization, one organization's share of one: then org is not 0).
create table shards (
  id integer generated always as identity primary key,
  org integer not null default 0,
  region text not null,
  -- Every window due at or before this instant has been reserved. Only moves forward.
  reserved_through timestamptz not null,
  -- Raised by every edit of a schedule, so that whoever computed from older terms reserves nothing.
  generation bigint not null default 1,
  -- The fence: what is older than this, less a run's time-out and the grace, is history.
  sealed_through timestamptz not null,
  -- The fence of the last sealing that was finished.
  settled_through timestamptz not null,
  -- Hours of every monitor are rolled up to here.
  rolled_up_through timestamptz not null,
  unique (org, region)
);

create table monitors (
  org integer not null references organizations,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  shard integer not null references shards,
  slug text not null,
  name text not null,
  description text not null default '',
  type text not null,
  target text not null default '',
  method text not null default 'GET',
  interval_seconds integer not null,
  timeout_seconds integer not null,
  retries integer not null default 0,
  failure_threshold integer not null default 1,
  confirm_interval_seconds integer not null default 0,
  renotify_seconds integer not null default 0,
  grace_seconds integer not null default 60,
  conditions text[] not null default '{}',
  tags text[] not null default '{}',
  depends_on integer[] not null default '{}',
  config jsonb not null default '{}',
  -- What of the config is secret, encrypted as one JSON object.
  config_ciphertext bytea,
  enabled boolean not null default true,
  auto_incident boolean not null default true,
  push_token_hash bytea,
  push_token_ciphertext bytea,
  -- Raised by every write: a result of an older revision cannot be told from one of another target.
  revision integer not null default 1,
  created_by integer,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  unique (org, project, slug),
  foreign key (org, project) references projects (org, id)
);
create index monitors_uid on monitors (uid);
create index monitors_shard on monitors (shard);
create index monitors_push_token on monitors (push_token_hash) where push_token_hash is not null;

-- A term governs what is due after from_at, up to and with the next term's from_at.
create table monitor_terms (
  org integer not null,
  monitor integer not null,
  from_at timestamptz not null,
  shard integer not null,
  anchor timestamptz not null,
  interval_seconds integer not null,
  timeout_seconds integer not null,
  grace_seconds integer not null,
  enabled boolean not null,
  primary key (org, monitor, from_at),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);

create index monitor_terms_shard on monitor_terms (shard, org, monitor);

-- Written only when it changes, so that a steady monitor costs no update.
create table monitor_states (
  org integer not null,
  monitor integer not null,
  version bigint not null default 1,
  status text not null default 'pending' check (status in ('pending', 'up', 'down')),
  -- Consecutive failures, counted up to the threshold and no further.
  failures integer not null default 0,
  -- The instant of the result that made the status what it is.
  since timestamptz not null,
  -- Of a push that has gone silent: its last heartbeat, so that nobody searches for it behind a
  -- long row of push_missed.
  silent_since timestamptz,
  primary key (org, monitor),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
) with (fillfactor = 60);

create table heartbeats (
  org integer not null,
  monitor integer not null,
  ts timestamptz not null,
  latency_ms integer not null,
  code integer,
  dns_us integer,
  connect_us integer,
  tls_us integer,
  first_byte_us integer,
  up boolean not null,
  msg text,
  primary key (org, monitor, ts)
) partition by range (ts);

create type verdict as enum ('covered', 'covered_late', 'withheld', 'missed');

create table expected_runs (
  org integer not null,
  monitor integer not null,
  due_at timestamptz not null,
  settled_at timestamptz not null,
  verdict verdict not null,
  reason text,
  primary key (org, monitor, due_at)
) partition by range (due_at);

-- Windows that are reserved and not yet settled, at most 50 to a row. A window's row in the ledger
-- is written once, with its verdict; until then it is reserved because it stands here.
create table run_batches (
  id bigint generated always as identity primary key,
  shard integer not null,
  kind text not null check (kind in ('run', 'push', 'composite')),
  orgs integer[] not null,
  monitors integer[] not null,
  due_ats timestamptz[] not null,
  seal_ats timestamptz[] not null,
  claim_untils timestamptz[] not null,
  -- False where the windows had passed their claiming before they could be handed out.
  published boolean not null,
  first_due timestamptz not null,
  claim_until timestamptz not null,
  first_seal timestamptz not null,
  last_seal timestamptz not null,
  holder uuid,
  lease_until timestamptz,
  claimed boolean not null default false
);
create index run_batches_open on run_batches (shard, first_due) where kind = 'run' and published;
create index run_batches_seal on run_batches (shard, first_seal);

-- Runs that have no window: confirmations, the extra run after a change, what a person asked for.
create table jobs (
  org integer not null,
  id bigint generated always as identity,
  uid uuid not null,
  shard integer not null,
  monitor integer not null,
  reason text not null check (reason in ('confirm', 'extra', 'asked')),
  due_at timestamptz not null,
  claim_until timestamptz not null,
  holder uuid,
  lease_until timestamptz,
  primary key (org, id)
);
create index jobs_due on jobs (shard, due_at);
create unique index jobs_one on jobs (org, monitor, reason);

-- A change of status, for whoever decides what follows from it.
create table status_changes (
  org integer not null,
  id bigint generated always as identity,
  monitor integer not null,
  at timestamptz not null,
  old_status text not null,
  new_status text not null,
  committed_at timestamptz not null,
  primary key (org, id)
);

-- One row a process and an unbroken stretch of being there.
create table presences (
  process uuid not null,
  from_at timestamptz not null,
  through_at timestamptz not null,
  host text not null,
  roles text[] not null,
  region text,
  version text not null,
  -- It serves the push routes: what it hears until through_at is committed.
  accepts_pushes boolean not null,
  -- It said goodbye; without this, 15 s before its end count as unheard.
  ended boolean not null default false,
  primary key (process, from_at)
) with (fillfactor = 60);
create index presences_through on presences (through_at);

-- /start and /log of a push: recorded, covering nothing.
create table push_events (
  org integer not null,
  monitor integer not null,
  at timestamptz not null,
  kind text not null,
  msg text not null default '',
  primary key (org, monitor, at),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);

create table maintenances (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  monitor integer,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  reason text not null default '',
  created_at timestamptz not null,
  archived_at timestamptz,
  cancel_effective_at timestamptz,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  check (ends_at > starts_at)
);
create index maintenances_uid on maintenances (uid);

-- Time by state, whole microseconds; counts are of results. The SLI of an hour is exact.
create table monitor_hours (
  org integer not null,
  monitor integer not null,
  hour timestamptz not null,
  good_us bigint not null,
  bad_us bigint not null,
  unknown_us bigint not null,
  excluded_us bigint not null,
  up integer not null,
  total integer not null,
  primary key (org, monitor, hour)
);

create table monitor_days (
  org integer not null,
  monitor integer not null,
  day timestamptz not null,
  good_us bigint not null,
  bad_us bigint not null,
  unknown_us bigint not null,
  excluded_us bigint not null,
  up integer not null,
  total integer not null,
  primary key (org, monitor, day)
);

-- Figures that must be made again because something was learnt late.
create table repairs (
  org integer not null,
  id bigint generated always as identity,
  shard integer not null,
  monitor integer not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  created_at timestamptz not null,
  attempts integer not null default 0,
  due_at timestamptz not null,
  last_error text,
  primary key (org, id)
);
create index repairs_due on repairs (due_at);
