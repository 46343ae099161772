-- Verified backups of `leadline backup --schedule`. The command writes the rows and keeps the newest;
-- the metrics report the age of the newest.
create table backups (
  id bigint generated always as identity primary key,
  -- The instant as of which the backup contains the database.
  created_at timestamptz not null,
  verified_at timestamptz not null,
  file text not null,
  bytes bigint not null check (bytes > 0),
  row_count bigint not null check (row_count >= 0),
  check (verified_at >= created_at)
);
create index backups_created_at on backups (created_at);
