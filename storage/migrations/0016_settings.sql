-- A setting may hold one secret, sealed; `revision` is raised by every write, so that a process
-- knows whether what it made of a setting is what is set.
alter table settings
  add column uid uuid not null default gen_random_uuid(),
  add column secret_sealed bytea,
  add column revision integer not null default 1,
  add unique (uid);
