-- When the escalation looks again whether a mute is over, and by how much the last look postponed
-- the steps. They hold while the first equals `escalate_at`; a mute that ends early takes back the
-- rest of the time.
alter table incidents add column mute_looks_at timestamptz;
alter table incidents add column mute_delay interval;
-- Whether the bundle of a managed monitor states its channels. Otherwise people attach them.
alter table monitors add column channels_managed boolean not null default false;
