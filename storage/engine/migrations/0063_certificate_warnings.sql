-- Days before the end of a certificate from which a monitor warns. 0 is off.
alter table monitors add column warn_certificate_days integer not null default 0;
create index monitors_warn_certificate on monitors (org, id) where warn_certificate_days > 0;

-- Certificates that the checks of a revision saw lately, as JSON [[end, last seen], …] in µs since the
-- epoch. `ends_at` and `seen_at` repeat the one that counts. Without any, the checks use no TLS.
create table monitor_certificates (
  org integer not null,
  monitor integer not null,
  revision integer not null,
  seen jsonb not null,
  ends_at timestamptz,
  seen_at timestamptz,
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
