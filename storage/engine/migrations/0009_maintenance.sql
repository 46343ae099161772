-- Maintenance is announced, cut short and annulled by people; and when one is over, what it covered
-- is checked once more.
alter table maintenances add column resumed_at timestamptz;
create index maintenances_resume on maintenances (least(ends_at, cancel_effective_at))
  where resumed_at is null and archived_at is null;
create index maintenances_project on maintenances (org, project, starts_at desc);

-- What somebody was shown before changing what is past already; good for a while, and once.
create table maintenance_previews (
  org integer not null,
  uid uuid not null,
  project integer not null,
  mutation text not null check (mutation in ('create', 'annul')),
  -- Of annulling.
  maintenance integer,
  monitor integer,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (org, uid),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index maintenance_previews_expired on maintenance_previews (expires_at);
