-- Actions on many monitors that continue in the background. The state `editing` keeps them apart from
-- deletions and bundles for processes of the version before; the API shows it as `running`.
alter table operations
  drop constraint operations_kind_check,
  add constraint operations_kind_check check (kind in ('bundle_apply', 'project_delete',
    'organization_delete', 'monitors_edit')),
  drop constraint operations_state_check,
  add constraint operations_state_check
    check (state in ('running', 'applying', 'editing', 'succeeded', 'failed')),
  drop constraint operations_check,
  add constraint operations_check
    check ((state in ('running', 'applying', 'editing')) = (finished_at is null));
create index operations_editing on operations (org, project, created_at) where state = 'editing';

-- What an operation does with each of its objects.
create table bulk_actions (
  -- The operation.
  uid uuid primary key references operations on delete cascade,
  org integer not null,
  project integer not null,
  act text not null,
  -- JSON, such as the tag.
  arguments text not null,
  -- Who requested the end before the last object; null if nobody did.
  stopped_by text,
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index bulk_actions_project on bulk_actions (org, project);

-- Monitors of the action, or maintenance windows that it ends.
create table bulk_action_objects (
  action uuid not null references bulk_actions on delete cascade,
  place integer not null,
  uid uuid not null,
  name text not null,
  state text not null default 'waiting'
    check (state in ('waiting', 'changed', 'unchanged', 'failed')),
  -- The object that the undo needs, if the state is `changed`.
  undo uuid,
  -- Code and rule of the refusal, if the state is `failed`.
  code text,
  rule text,
  primary key (action, place)
);
create index bulk_action_objects_waiting on bulk_action_objects (action, place)
  where state = 'waiting';
