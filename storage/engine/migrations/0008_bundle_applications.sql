-- Bundles that are applied in the background, and the revisions of the bundles of a project.

-- The answer of a bundle that was applied, as JSON.
alter table operations add column result text;
-- The state of a bundle that is not yet applied is `applying`, which the API shows as `running`. A
-- process of the version before works on every operation with the state `running` as on a deletion,
-- and would delete the project.
alter table operations
  drop constraint operations_state_check,
  add constraint operations_state_check
    check (state in ('running', 'applying', 'succeeded', 'failed')),
  drop constraint operations_check,
  add constraint operations_check
    check ((state in ('running', 'applying')) = (finished_at is null));
-- One bundle at a time is applied to a project in the background.
create unique index operations_bundle_apply on operations (org, project) where state = 'applying';

-- The bundle of a running operation. Its row is deleted when the operation ends.
create table bundle_applications (
  -- The operation.
  uid uuid primary key references operations on delete cascade,
  project uuid not null,
  -- JSON. Encrypted if it contains a scenario or a workflow, which are encrypted in `monitors` too.
  document text,
  document_ciphertext bytea,
  -- The name of the bundle as in `monitors.bundle_path`.
  path text not null,
  take_over boolean not null,
  -- Revision of the plan that the application must equal. Empty for any.
  revision text not null,
  actor_label text not null,
  actor_user uuid,
  check ((document is null) <> (document_ciphertext is null))
);

-- Applications over the API that changed something.
create table bundle_revisions (
  org integer not null,
  project integer not null,
  path text not null,
  revision integer not null,
  applied_at timestamptz not null,
  actor_label text not null,
  created integer not null,
  updated integer not null,
  orphaned integer not null,
  unchanged integer not null,
  taken_over integer not null,
  primary key (org, project, path, revision),
  foreign key (org, project) references projects (org, id) on delete cascade
);
