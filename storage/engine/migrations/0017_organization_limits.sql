-- Limits of single organizations on their monitors. Null is the limit of the installation.
create table organization_limits (
  org integer primary key references organizations on delete cascade,
  monitors integer,
  shortest_interval_seconds integer,
  runs_per_minute integer,
  updated_at timestamptz not null
);
