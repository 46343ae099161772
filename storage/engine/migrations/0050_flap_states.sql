-- Number of outages within an hour from which on a monitor is flapping. 0 is off.
alter table monitors add column flap_threshold integer not null default 0;

-- The last outages of monitors with a threshold. `since_at` is the instant at which the monitor began to
-- flap, `up_at` since when it is up, `seen_at` the last change of its status that was counted.
create table flap_states (
  org integer not null,
  monitor integer not null,
  downs timestamptz[] not null,
  since_at timestamptz,
  up_at timestamptz,
  seen_at timestamptz,
  primary key (org, monitor),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
