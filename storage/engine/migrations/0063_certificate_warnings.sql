-- Days before the end of a certificate from which a monitor warns. 0 is off.
alter table monitors add column warn_certificate_days integer not null default 0;
create index monitors_warn_certificate on monitors (org, id) where warn_certificate_days > 0;

-- What the checks of a revision saw lately, as JSON [[end, last seen], …] in µs since the epoch. The end
-- of checks without TLS is null. A certificate counts for `window_us`. `ends_at` is the first end.
create table monitor_certificates (
  org integer not null,
  monitor integer not null,
  revision integer not null,
  window_us bigint not null,
  seen jsonb not null,
  ends_at timestamptz,
  primary key (org, monitor),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);

-- Open warnings of certificates. `thread` is that of the notifications. They have a table of their
-- own, because a process of the previous version writes `slow_warnings` by monitor.
create table certificate_warnings (
  org integer not null,
  monitor integer not null,
  since_at timestamptz not null,
  thread uuid not null,
  primary key (org, monitor),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
