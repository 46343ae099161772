-- A service may stand where a monitor stood: which one, and since when the monitor is retired.
alter table monitors
  add column superseded_by integer,
  add column retired_at timestamptz,
  add foreign key (org, superseded_by) references services (org, id)
    on delete set null (superseded_by),
  add constraint monitors_retired_are_paused check (retired_at is null or not enabled);
create index monitors_superseded on monitors (org, superseded_by) where superseded_by is not null;
