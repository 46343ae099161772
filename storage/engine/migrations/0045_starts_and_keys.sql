-- A mute that starts later: at its start, the leaders of storms are looked at again, so that alerts
-- that a muted leader covers are released then. The default is for mutes that wait already, and for
-- those that a running previous version inserts.
alter table mutes add column awaits_start boolean not null default true;
update mutes set awaits_start = false where starts_at <= now();
create index mutes_starting on mutes (starts_at) where awaits_start;

-- Whether the keys of the process decrypt none of the stored values. Null: another process or part
-- checks, or the process has not checked yet.
alter table presences add column opens_nothing boolean;

-- Incidents of the members of a service that started in a range.
create index incidents_monitor_started on incidents (org, monitor, started_at)
  where monitor is not null;
