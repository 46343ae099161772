-- Where people are told: channels of a project, and whose monitors tell them. What of a channel's
-- settings is secret stands sealed beside the rest, and leaves a blank among them.
create table notification_channels (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  type text not null,
  name text not null,
  config jsonb not null,
  config_ciphertext bytea,
  enabled boolean not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index notification_channels_uid on notification_channels (uid);
create index notification_channels_project on notification_channels (org, project);

create table monitor_channels (
  org integer not null,
  monitor integer not null,
  channel integer not null,
  primary key (org, monitor, channel),
  foreign key (org, monitor) references monitors (org, id) on delete cascade,
  foreign key (org, channel) references notification_channels (org, id) on delete cascade
);
create index monitor_channels_channel on monitor_channels (org, channel);

-- Where machines are told of incidents: of the whole organization, or of one project of it.
create table webhooks (
  org integer not null references organizations on delete cascade,
  id integer generated always as identity,
  uid uuid not null,
  project integer,
  url text not null,
  secret_ciphertext bytea not null,
  enabled boolean not null,
  created_by integer references users on delete set null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index webhooks_uid on webhooks (uid);
