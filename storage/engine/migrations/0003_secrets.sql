-- Secrets of a project, which monitors name by their `…_ref` settings. Values are sealed, and leave
-- the system only inside the probes that use them.
create table project_secrets (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  name text not null,
  value_ciphertext bytea not null,
  created_at timestamptz not null,
  -- When the value was last replaced; null while it is the first.
  rotated_at timestamptz,
  -- Of the last change of name or value: by it probers learn that what they hold is old.
  updated_at timestamptz not null,
  primary key (org, id),
  unique (org, project, name),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index project_secrets_updated on project_secrets (updated_at);
