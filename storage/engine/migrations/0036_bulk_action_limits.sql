-- Until now a project could be deleted, and could run several actions on many monitors, while one of its
-- actions ran. An action without its row has no project any more.
update operations o set state = 'failed', finished_at = now(), error = 'the project was deleted'
where state = 'editing' and not exists (select from bulk_actions b where b.uid = o.uid);
update operations o set state = 'failed', finished_at = now(),
  error = 'another action of the project was running when Leadline was upgraded'
where state = 'editing' and exists (select from operations other
  where other.org = o.org and other.project = o.project and other.state = 'editing'
    and (other.created_at, other.uid) < (o.created_at, o.uid));
create unique index operations_editing_alone on operations (org, project) where state = 'editing';

-- The action that this action undoes, at most once; null if it undoes none, or after the purge of that one.
alter table bulk_actions add column undoes uuid references bulk_actions on delete set null;
create unique index bulk_actions_undoes on bulk_actions (undoes);

alter table bulk_action_objects
  -- Revision of the monitor after the change; null if the state is not `changed`.
  add column revision integer,
  -- Revision that the monitor needs for this undo; null if every revision is permitted.
  add column expected integer,
  drop constraint bulk_action_objects_state_check,
  add constraint bulk_action_objects_state_check
    check (state in ('waiting', 'changed', 'unchanged', 'skipped', 'failed'));
