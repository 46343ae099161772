-- Which monitors' schedules an edit changed: those listed, or all of a project, also the ones that are
-- created at the same time. A scheduler reads these rows instead of the terms of the whole shard.
-- Numbers are given in order; commits may come in another order.
create table schedule_edits (
  shard integer not null,
  seq bigint generated always as identity,
  at timestamptz not null,
  orgs integer[] not null,
  monitors integer[] not null,
  org integer,
  project integer,
  primary key (shard, seq)
);
create index schedule_edits_at on schedule_edits (at);

-- Edits up to this number are deleted. A scheduler that has not read them loads the plan again.
alter table shards add column edits_deleted_through bigint not null default 0;

-- The check locks the shard's row, for which sealing waits. At the commit it does so for a moment.
alter table monitors alter constraint monitors_shard_fkey deferrable initially deferred;
