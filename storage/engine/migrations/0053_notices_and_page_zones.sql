-- Title of a maintenance for subscribers of status pages; null if they are not told. A process of
-- the previous version inserts null.
alter table maintenances add column public_title text;
create index maintenances_public on maintenances (org, starts_at) where public_title is not null;

-- Steps of a maintenance that the subscribers of a page are told, each once.
create table maintenance_notices (
  org integer not null,
  maintenance integer not null,
  page integer not null,
  step text not null check (step in ('scheduled', 'in_progress', 'completed', 'cancelled')),
  -- Affected components of the page, which the later steps name too.
  components uuid[] not null,
  -- The notice as JSON.
  payload text not null,
  -- The last subscriber with a message, and whether all have one.
  enqueued_through integer not null default 0,
  done boolean not null default false,
  created_at timestamptz not null,
  primary key (org, maintenance, page, step),
  foreign key (org, maintenance) references maintenances (org, id) on delete cascade,
  foreign key (org, page) references status_pages (org, id) on delete cascade
);
create index maintenance_notices_open on maintenance_notices (created_at) where not done;
create index maintenance_notices_page on maintenance_notices (org, page);

-- Zone of the calendar months in the reports of the page.
alter table status_pages add column time_zone text not null default 'UTC';
