-- Response time above which a monitor is slow, and the checks in a row that begin or end the warning.
-- 0 is off.
alter table monitors add column slow_above_ms integer not null default 0;
alter table monitors add column slow_runs integer not null default 3;
create index monitors_slow_above on monitors (org, id) where slow_above_ms > 0;

-- Channels that get the warnings of the monitors of their project.
alter table notification_channels add column takes_warnings boolean not null default false;
create index notification_channels_warnings on notification_channels (org, project)
  where takes_warnings;

-- The last begin or end of a warning. `seen_at` is the result that decided, `since_at` is null after an
-- end. `thread` is that of the notifications of the warning.
create table slow_warnings (
  org integer not null,
  monitor integer not null,
  seen_at timestamptz not null,
  since_at timestamptz,
  thread uuid not null,
  primary key (org, monitor),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
