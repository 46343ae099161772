-- A mute that starts later: at its start, the leaders of storms are looked at again, so that alerts
-- that a muted leader covers are released then.
alter table mutes add column awaits_start boolean not null default false;
create index mutes_starting on mutes (starts_at) where awaits_start;
