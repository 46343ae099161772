-- The newest bodies of pushes, for monitors with keep_bodies.
create table push_bodies (
  org integer not null,
  monitor integer not null,
  uid uuid not null unique,
  at timestamptz not null,
  kind text not null check (kind in ('heartbeat', 'start', 'log')),
  -- Null for a mark.
  up boolean,
  run text not null,
  -- Whether the body is longer than the kept part.
  is_cut boolean not null,
  body_ciphertext bytea not null,
  primary key (org, monitor, at, uid),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
