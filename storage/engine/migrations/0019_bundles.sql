-- Configuration as code: which monitors and services come from bundles, and the files they stand in.

-- `managed_by` is the provider: `api` where a bundle was applied over the API, else the name of a
-- file provider. Its files call the monitor `bundle_uid`; once they no longer do it is an orphan.
alter table monitors
  add column managed_by text not null default '',
  add column bundle_uid text,
  add column bundle_path text not null default '',
  add column orphaned_at timestamptz;
create unique index monitors_bundle on monitors (org, project, managed_by, bundle_uid)
  where bundle_uid is not null;

alter table services
  add column bundle_uid text,
  add column bundle_path text not null default '',
  add column orphaned_at timestamptz;
create unique index services_bundle on services (org, project, managed_by, bundle_uid)
  where bundle_uid is not null;

-- One scan at a time of a provider's directory, by whoever holds the lease.
create table bundle_providers (
  provider text primary key,
  -- organization/project, organization/*, or empty for any.
  scope text not null,
  holder uuid not null,
  lease_until timestamptz not null,
  last_scan timestamptz,
  last_success timestamptz,
  last_error text not null default ''
);

-- A file as it was last looked at. `project` and `generation` are of what was applied of it last,
-- which stays in force while the file is wrong.
create table bundle_files (
  provider text not null references bundle_providers on delete cascade,
  path text not null,
  organization text not null default '',
  project_slug text not null default '',
  project uuid,
  -- SHA-256 of what was looked at last.
  digest bytea not null,
  generation integer not null default 0,
  status text not null check (status in ('pending', 'applied', 'rejected', 'error', 'degraded')),
  last_error text not null default '',
  scanned_at timestamptz not null,
  applied_at timestamptz,
  primary key (provider, path)
);
