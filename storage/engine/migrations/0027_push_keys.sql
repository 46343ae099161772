-- The push key of a project: its URLs name a push monitor by its slug.
create table push_keys (
  org integer not null,
  project integer not null,
  uid uuid not null unique,
  token_hash bytea not null unique,
  token_ciphertext bytea not null,
  -- Whether the first push to an unknown slug creates a monitor.
  creates_monitors boolean not null,
  created_at timestamptz not null,
  primary key (org, project),
  foreign key (org, project) references projects (org, id) on delete cascade
);
