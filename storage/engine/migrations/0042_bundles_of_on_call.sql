-- Bundles of format 3 manage on-call objects: the marks are those of monitors and services.
alter table notification_channels
  add column managed_by text not null default '',
  add column bundle_uid text,
  add column bundle_path text not null default '',
  add column orphaned_at timestamptz;
create unique index notification_channels_bundle
  on notification_channels (org, project, managed_by, bundle_uid) where bundle_uid is not null;

alter table oncall_schedules
  add column managed_by text not null default '',
  add column bundle_uid text,
  add column bundle_path text not null default '',
  add column orphaned_at timestamptz;
create unique index oncall_schedules_bundle
  on oncall_schedules (org, project, managed_by, bundle_uid) where bundle_uid is not null;

alter table escalation_policies
  add column managed_by text not null default '',
  add column bundle_uid text,
  add column bundle_path text not null default '',
  add column orphaned_at timestamptz;
create unique index escalation_policies_bundle
  on escalation_policies (org, project, managed_by, bundle_uid) where bundle_uid is not null;

-- The marks of the list of alert routes of a project, which is one object. Without a row people own it.
-- `uid` is that of the project.
create table alert_route_lists (
  org integer not null,
  id integer generated always as identity,
  project integer not null,
  uid uuid not null,
  managed_by text not null default '',
  bundle_uid text,
  bundle_path text not null default '',
  orphaned_at timestamptz,
  primary key (org, project),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index alert_route_lists_managed on alert_route_lists (managed_by) where managed_by <> '';
