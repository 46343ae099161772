-- Consecutive successes that make a DOWN monitor UP.
alter table monitors add column recovery_threshold integer not null default 1;
-- Successes since the last failure of a DOWN monitor that recovers.
alter table monitor_states add column successes integer not null default 0;
