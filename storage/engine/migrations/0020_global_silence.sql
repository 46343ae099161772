-- Everybody is to be left in peace for a while: an outage that would be told then waits.
alter table outages drop constraint outages_held_by_check;
alter table outages add constraint outages_held_by_check check (held_by in
  ('waiting', 'rechecking', 'dependency', 'maintenance', 'paused', 'unknown', 'delegated',
   'silenced'));
