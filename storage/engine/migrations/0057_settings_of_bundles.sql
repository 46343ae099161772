-- Bundles of format 3 also state gate policies, objectives of monitors, and settings of the project.
alter table services add column gate_managed boolean not null default false;
alter table monitors add column targets_managed boolean not null default false;

-- Marks of objects whose own table has none. `uid` is that of the object; the settings of a project
-- are one object with its uid. Without a row people own the object.
create table bundle_objects (
  org integer not null,
  id integer generated always as identity,
  project integer not null,
  kind text not null,
  uid uuid not null,
  managed_by text not null default '',
  bundle_uid text,
  bundle_path text not null default '',
  orphaned_at timestamptz,
  primary key (org, project, kind, uid),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create unique index bundle_objects_id on bundle_objects (org, id);
create index bundle_objects_managed on bundle_objects (managed_by) where managed_by <> '';
