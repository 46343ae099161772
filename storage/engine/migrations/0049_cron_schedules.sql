-- Cron expression and IANA time zone of a monitor that has a schedule in place of an interval. The
-- interval is then the shortest distance of its due instants, at most a day, so that limits and older
-- processes read a valid one.
alter table monitors
  add column schedule text not null default '',
  add column timezone text not null default '';
alter table monitor_terms
  add column schedule text not null default '',
  add column timezone text not null default '';
alter table deleted_monitor_terms
  add column schedule text not null default '',
  add column timezone text not null default '';
create or replace view known_terms as
  select org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds,
    enabled, schedule, timezone
  from monitor_terms
  union all
  select org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds,
    enabled, schedule, timezone
  from deleted_monitor_terms;

-- Whether the process computes schedules: a process of an earlier version does not write the column.
alter table presences add column knows_schedules boolean not null default false;
