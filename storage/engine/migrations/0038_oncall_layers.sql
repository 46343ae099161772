-- Weekly hours and bounds of the first layer of an on-call schedule. The other columns of the layer
-- exist already. A window of weekly hours is text, such as `mon,tue 09:00-17:00`.
alter table oncall_schedules
  add column restrictions text[] not null default '{}',
  add column starts_at timestamptz,
  add column ends_at timestamptz;

-- Further layers of a schedule. A layer with a higher place takes precedence.
create table oncall_layers (
  org integer not null,
  schedule integer not null,
  -- From 1, as the first layer is in `oncall_schedules`.
  place integer not null,
  name text not null,
  anchor_at timestamptz not null,
  shift_seconds integer not null,
  timezone text not null,
  restrictions text[] not null,
  starts_at timestamptz,
  ends_at timestamptz,
  primary key (org, schedule, place),
  foreign key (org, schedule) references oncall_schedules (org, id) on delete cascade
);

-- Layer of a participant, 0 for the first one. `place` ascends through all layers of a schedule.
alter table oncall_participants add column layer integer not null default 0;
