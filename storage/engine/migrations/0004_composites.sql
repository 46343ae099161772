-- Composites: what each was made of, and since when; who is to be evaluated beside the schedule; and
-- what is kept of a monitor that was part of one, so that its past can still be told.

-- What a composite is made of in [from_at, until_at), kept as long as its figures may be made again.
-- No key refers to the monitor: what was so stays so when the composite is gone.
create table composite_terms (
  org integer not null,
  monitor integer not null,
  from_at timestamptz not null,
  until_at timestamptz not null default 'infinity',
  mode text not null check (mode in ('all', 'any', 'quorum')),
  quorum integer not null,
  children integer[] not null,
  primary key (org, monitor, from_at)
);
-- Whose part a monitor is, now or at some time.
create index composite_terms_children on composite_terms using gin (children);
create index composite_terms_until on composite_terms (until_at) where until_at < 'infinity';

-- Composites that are to be looked at without a window: one of their members has changed its
-- status, or an edit asks for it. No key refers to the monitor: whoever stores a result of a member
-- must not fail because the composite goes at that moment.
create table composite_wakeups (
  org integer not null,
  monitor integer not null,
  due_at timestamptz not null,
  primary key (org, monitor)
);
create index composite_wakeups_due on composite_wakeups (due_at);

-- Deleted monitors that a composite was made of, with the terms that they ran by.
create table deleted_monitors (
  org integer not null,
  id integer not null,
  project integer not null,
  type text not null,
  deleted_at timestamptz not null,
  primary key (org, id)
);
create index deleted_monitors_id on deleted_monitors (id);
create table deleted_monitor_terms (
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
  foreign key (org, monitor) references deleted_monitors (org, id) on delete cascade
);

-- All that figures of the past may be made of. Who has departed stands in no shard.
create view known_monitors as
  select org, id, project, shard, type from monitors
  union all
  select org, id, project, null, type from deleted_monitors;
create view known_terms as
  select org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds,
    enabled
  from monitor_terms
  union all
  select org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds,
    enabled
  from deleted_monitor_terms;

-- Composites' windows that are to be looked at: few, as they are settled as soon as they are due.
create index run_batches_composite on run_batches (first_due) where kind = 'composite' and published;
-- Monitors are also asked for by their number alone, which is unique by itself.
create index monitors_id on monitors (id);
