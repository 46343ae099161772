-- Work that a request starts and that can continue after its answer. No foreign key refers to the
-- organization or the project, since the row outlives them.
create table operations (
  uid uuid primary key,
  kind text not null check (kind in ('bundle_apply', 'project_delete', 'organization_delete')),
  state text not null default 'running' check (state in ('running', 'succeeded', 'failed')),
  org integer not null,
  -- Null for work on the whole organization.
  project integer,
  -- The user or token that started it, which can read it whatever its role is.
  started_by uuid,
  done integer not null default 0,
  total integer not null,
  created_at timestamptz not null,
  finished_at timestamptz,
  error text,
  check ((state = 'running') = (finished_at is null))
);
create index operations_running on operations (created_at) where state = 'running';
create index operations_finished on operations (finished_at) where finished_at is not null;

-- Since when a deletion is in progress. Nothing is added to such a project or organization, it is in
-- no list, and its monitors and services send no alerts.
alter table projects add column deleting_since timestamptz;
alter table organizations add column deleting_since timestamptz;
