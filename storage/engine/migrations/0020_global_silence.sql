-- Everybody is to be left in peace for a while: an outage that would be told then waits.
alter table outages drop constraint outages_suppressed_by_check;
alter table outages add constraint outages_suppressed_by_check check (suppressed_by in
  ('waiting', 'rechecking', 'dependency', 'maintenance', 'paused', 'unknown', 'delegated',
   'silenced'));
