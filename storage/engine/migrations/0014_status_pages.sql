-- Status pages: what the public may see of what is measured, and what people say beside it.

create table status_pages (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  -- Null for a page of the whole organization.
  project integer,
  -- Its public address, and so one of the whole installation.
  slug text not null unique,
  title text not null,
  visibility text not null check (visibility in ('listed', 'unlisted', 'internal')),
  -- Of an unlisted page: by which it is opened, and as it is shown to those who may hand it on.
  token_hash bytea,
  token_ciphertext bytea,
  -- Rises with every edit of the page and of its components.
  generation integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org) references organizations (id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  check ((visibility = 'unlisted') = (token_hash is not null)),
  check ((token_hash is null) = (token_ciphertext is null))
);
create index status_pages_uid on status_pages (uid);
create index status_pages_project on status_pages (org, project);

-- One source each. What a component was bound to may go: it stays, and measures nothing any more.
create table status_components (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  page integer not null,
  name text not null,
  description text not null default '',
  group_name text not null default '',
  position integer not null,
  source text not null check (source in ('monitor', 'service', 'manual')),
  monitor integer,
  service integer,
  manual_status text check (manual_status in
    ('operational', 'degraded', 'partial_outage', 'major_outage', 'maintenance', 'no_data')),
  revision integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, page) references status_pages (org, id) on delete cascade,
  foreign key (org, monitor) references monitors (org, id) on delete set null (monitor),
  foreign key (org, service) references services (org, id) on delete set null (service),
  check (monitor is null or source = 'monitor'),
  check (service is null or source = 'service'),
  check ((source = 'manual') = (manual_status is not null))
);
create index status_components_uid on status_components (uid);
create index status_components_page on status_components (org, page, position, id);
create index status_components_monitor on status_components (org, monitor)
  where monitor is not null;
create index status_components_service on status_components (org, service)
  where service is not null;

-- What people may set for the whole installation; a name that is not there is not set.
create table settings (
  name text primary key,
  value jsonb not null,
  updated_at timestamptz not null
);
