-- Services: what is declared of them and who they depend on, what is sealed of their time, what is
-- aimed at, and how they speak for the monitors that they are made of.

-- Raised by each change of who depends on whom: what was read before is old.
alter table projects add column graph_generation integer not null default 0;
alter table projects add column sla_report_weekly boolean not null default false;

create table services (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  slug text not null,
  name text not null,
  description text not null default '',
  -- Whom its pages go to: a ladder, else whoever is on call.
  escalation_policy integer,
  oncall_schedule integer,
  -- The provider whose files it comes from; empty where people edit it.
  managed_by text not null default '',
  -- Its time is sealed in [materialization_start, sealed_through), whole minutes both; null while
  -- nothing is declared. What lies before the start, down to backfill_from, is still to be made.
  materialization_start timestamptz,
  sealed_through timestamptz,
  backfill_from timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  unique (org, project, slug),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, escalation_policy) references escalation_policies (org, id)
    deferrable initially deferred,
  foreign key (org, oncall_schedule) references oncall_schedules (org, id)
    deferrable initially deferred
);
create index services_uid on services (uid);
create index services_escalation_policy on services (org, escalation_policy)
  where escalation_policy is not null;
create index services_oncall_schedule on services (org, oncall_schedule)
  where oncall_schedule is not null;

-- What was declared, kept for ever. Of two that begin together the later one governs.
create table service_revisions (
  org integer not null,
  service integer not null,
  revision integer not null,
  uid uuid not null,
  effective_at timestamptz not null,
  -- Earlier than effective_at only of the first, where the past was reconstructed by it.
  governs_from timestamptz not null,
  -- All that are declared, in the order given, and those of them that the SLI is made of.
  monitors integer[] not null,
  sli integer[] not null,
  mode text not null check (mode in ('all', 'any', 'quorum')),
  healthy_min integer not null,
  degraded_min integer not null,
  region_mode text not null check (region_mode in ('per_region', 'any_region', 'all_regions')),
  healthy_min_regions integer not null,
  degraded_min_regions integer not null,
  missing_data text not null check (missing_data in ('unknown', 'bad', 'ignore')),
  active_multiplier integer not null,
  active_floor_us bigint not null,
  created_at timestamptz not null,
  created_by integer references users on delete set null,
  created_by_label text not null,
  primary key (org, service, revision),
  foreign key (org, service) references services (org, id) on delete cascade
);
-- Whose member a monitor is, now or at some time.
create index service_revisions_monitors on service_revisions using gin (monitors);

-- Stretches within a revision in which its members stood in the same regions at the same intervals.
create table service_epochs (
  org integer not null,
  service integer not null,
  seq integer not null,
  uid uuid not null,
  revision integer not null,
  effective_at timestamptz not null,
  snapshot_hash text not null,
  members integer not null,
  primary key (org, service, seq),
  unique (org, service, effective_at),
  foreign key (org, service) references services (org, id) on delete cascade
);

-- Sealed minutes: a run of neighbouring ones that are alike is one row, with the microseconds of
-- each of them. Runs never overlap, and none reaches over midnight in UTC.
create table service_minutes (
  org integer not null,
  service integer not null,
  from_at timestamptz not null,
  until_at timestamptz not null,
  epoch integer not null,
  good_us integer not null,
  bad_us integer not null,
  unknown_us integer not null,
  excluded_us integer not null,
  healthy_us integer not null,
  degraded_us integer not null,
  down_us integer not null,
  health_unknown_us integer not null,
  primary key (org, service, from_at),
  foreign key (org, service) references services (org, id) on delete cascade,
  check (until_at > from_at)
);
-- Sums of them, kept longer; `minutes` says of how many.
create table service_hours (
  org integer not null,
  service integer not null,
  start timestamptz not null,
  epoch integer not null,
  minutes integer not null,
  good_us bigint not null,
  bad_us bigint not null,
  unknown_us bigint not null,
  excluded_us bigint not null,
  healthy_us bigint not null,
  degraded_us bigint not null,
  down_us bigint not null,
  health_unknown_us bigint not null,
  primary key (org, service, start, epoch),
  foreign key (org, service) references services (org, id) on delete cascade
);
create table service_days (
  like service_hours including all,
  foreign key (org, service) references services (org, id) on delete cascade
);

create table service_dependencies (
  org integer not null,
  service integer not null,
  upstream integer not null,
  primary key (org, service, upstream),
  foreign key (org, service) references services (org, id) on delete cascade,
  foreign key (org, upstream) references services (org, id) on delete cascade,
  check (service <> upstream)
);
create index service_dependencies_upstream on service_dependencies (org, upstream);

-- What is aimed at over a window; an objective is percent × 10⁴.
create table service_targets (
  org integer not null,
  service integer not null,
  "window" text not null check ("window" in ('24h', '7d', '30d', '90d')),
  uid uuid not null,
  objective integer not null,
  burn_enabled boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, service, "window"),
  foreign key (org, service) references services (org, id) on delete cascade
);
create table monitor_targets (
  org integer not null,
  monitor integer not null,
  "window" text not null check ("window" in ('24h', '7d', '30d', '90d')),
  uid uuid not null,
  objective integer not null,
  burn_enabled boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, monitor, "window"),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
create table project_targets (
  org integer not null,
  project integer not null,
  "window" text not null check ("window" in ('24h', '7d', '30d', '90d')),
  uid uuid not null,
  objective integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, project, "window"),
  foreign key (org, project) references projects (org, id) on delete cascade
);

-- Burn rules of a target, of a service or of a monitor, by their place, with what was last seen of
-- each. Without rows the default rules are what a figure is shown by, and nobody is told.
create table burn_rules (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  service integer,
  monitor integer,
  "window" text not null,
  place integer not null,
  long_seconds integer not null,
  short_seconds integer not null,
  threshold numeric(12, 4) not null,
  severity text not null check (severity in ('page', 'ticket')),
  -- Whether it fires, since when, and the last look: `firing`, `clear` or `unevaluated`.
  firing boolean not null default false,
  firing_since timestamptz,
  last_verdict text check (last_verdict in ('firing', 'clear', 'unevaluated')),
  evaluated_at timestamptz,
  lease_until timestamptz,
  -- When people were told last that it fires; null where nobody was, or they know that it is over.
  notified_at timestamptz,
  primary key (org, id),
  foreign key (org, service) references services (org, id) on delete cascade,
  foreign key (org, monitor) references monitors (org, id) on delete cascade,
  check (num_nonnulls(service, monitor) = 1)
);
create unique index burn_rules_monitor on burn_rules (org, monitor, "window", place)
  where monitor is not null;
create unique index burn_rules_service on burn_rules (org, service, "window", place)
  where service is not null;
create unique index burn_rules_uid on burn_rules (org, uid);

-- How a service speaks, and what its evaluator last saw. One row a service; who holds it decides
-- alone about the service's episodes and about whether its members speak for themselves.
create table service_alerting (
  org integer not null,
  service integer not null,
  owns_paging boolean not null default false,
  page_on text[] not null default '{down}',
  page_on_unknown boolean not null default false,
  confirm_evaluations integer not null default 2,
  renotify_seconds integer not null default 0,
  -- Raised by each edit of how it speaks: what was seen under another is none of it.
  generation integer not null default 1,
  edited_at timestamptz not null,
  due_at timestamptz not null,
  live_evaluated_at timestamptz,
  live_generation integer,
  live_revision integer,
  live_state text check (live_state in ('healthy', 'degraded', 'down', 'unknown', 'excluded')),
  -- Evaluations in a row, up to what confirming takes, that would page.
  live_streak integer not null default 0,
  -- Since when it has been seen as it is.
  live_since timestamptz,
  live_reason text,
  live_error text,
  live_lease_until timestamptz,
  burn_evaluated_at timestamptz,
  burn_generation integer,
  burn_reason text,
  burn_error text,
  burn_lease_until timestamptz,
  primary key (org, service),
  foreign key (org, service) references services (org, id) on delete cascade
) with (fillfactor = 60);
create index service_alerting_due on service_alerting (due_at);

-- From a service's being seen in trouble to its being seen well; told of once.
create table service_episodes (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  service integer not null,
  began_at timestamptz not null,
  ended_at timestamptz,
  state text not null,
  incident integer,
  -- When the service itself paged; null while a member's own page stands for it.
  announced_at timestamptz,
  notified_at timestamptz,
  -- When the first of its pages was known to have arrived.
  page_delivered_at timestamptz,
  primary key (org, id),
  foreign key (org, service) references services (org, id) on delete cascade,
  foreign key (org, incident) references incidents (org, id) on delete set null (incident)
);
create unique index service_episodes_open on service_episodes (org, service)
  where ended_at is null;

-- Who told of an outage: a service, or where this is null the monitor itself; and why it did so
-- though a service owns its paging.
alter table outages add column service integer;
alter table outages add column failed_open text;
alter table outages add foreign key (org, service) references services (org, id)
  on delete set null (service);
alter table outages drop constraint outages_suppressed_by_check;
alter table outages add constraint outages_suppressed_by_check check (suppressed_by in
  ('waiting', 'rechecking', 'dependency', 'maintenance', 'paused', 'unknown', 'delegated'));

alter table incidents add column service integer;
alter table incidents add foreign key (org, service) references services (org, id)
  on delete set null (service);
alter table incidents add check (num_nonnulls(monitor, service) <= 1);
create unique index incidents_one_of_service on incidents (org, service)
  where source = 'auto' and service is not null and status <> 'resolved';
create index incidents_service on incidents (org, service) where service is not null;
-- From when its ladder counts, where that is not when it was opened.
alter table incidents add column escalation_started_at timestamptz;

-- Why figures are made again.
alter table repairs add column reason text not null default 'late_result';

-- Maintenance that comes again: an RRULE (RFC 5545), from which windows are announced ahead.
create table maintenance_series (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  monitor integer,
  rrule text not null,
  starts_at timestamptz not null,
  duration_seconds integer not null,
  timezone text not null,
  reason text not null default '',
  -- Windows that begin before this are announced.
  generated_through timestamptz not null,
  ended_at timestamptz,
  created_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
create index maintenance_series_uid on maintenance_series (uid);
alter table maintenances add column series integer;

-- Not every service could be told of in it.
alter table maintenance_previews add column approximate boolean not null default false;
