-- A mute has postponed the next step of the escalation.
alter table incidents add column is_postponed boolean not null default false;
-- Channel of the person that the incident was reassigned to last; null for none. The channel can
-- have been deleted since.
alter table incidents add column assigned_channel integer;
