-- What a bundle declares is known by who brought it, the project and its name in the bundle.
-- `managed_by` is the provider whose file or call it came from, empty where people edit it;
-- `orphaned_at` is since when the bundle says nothing of it any more.
alter table monitors
  add column managed_by text not null default '',
  add column bundle_uid text,
  add column orphaned_at timestamptz;
alter table services
  add column bundle_uid text,
  add column orphaned_at timestamptz;
create unique index monitors_bundle on monitors (org, project, managed_by, bundle_uid)
  where bundle_uid is not null;
create unique index services_bundle on services (org, project, managed_by, bundle_uid)
  where bundle_uid is not null;

-- Each file of a provider: what became of it last.
create table provider_bundles (
  provider text not null,
  path text not null,
  organization text not null default '',
  project_slug text not null default '',
  org integer references organizations on delete cascade,
  project integer,
  generation integer not null default 0,
  status text not null check (status in ('pending', 'applied', 'rejected', 'error', 'degraded')),
  last_error text not null default '',
  digest bytea,
  applied_at timestamptz,
  updated_at timestamptz not null,
  primary key (provider, path),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index provider_bundles_project on provider_bundles (org, project);

create table provider_scans (
  provider text primary key,
  process uuid not null,
  last_scan_at timestamptz not null,
  last_success_at timestamptz,
  last_error text not null default ''
);
