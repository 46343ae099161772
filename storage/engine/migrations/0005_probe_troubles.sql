-- Why a monitor could not even be made ready to run: one row a monitor, of the last time.
create table probe_errors (
  org integer not null,
  monitor integer not null,
  reason text not null check (reason in ('carrier_too_old', 'missing_reference', 'decrypt_failed')),
  at timestamptz not null,
  primary key (org, monitor),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
