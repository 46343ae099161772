-- A way to reach a person. Its address never changes, so that a verified method stays that of the
-- person who verified it.
create table contact_methods (
  id integer generated always as identity primary key,
  uid uuid not null unique,
  user_id integer not null references users on delete cascade,
  kind text not null,
  label text not null,
  config jsonb not null,
  config_ciphertext bytea,
  enabled boolean not null,
  verified_at timestamptz,
  -- SHA-256 of the method and the code, while one is valid.
  code_hash bytea,
  code_expires_at timestamptz,
  code_attempts integer not null default 0,
  created_at timestamptz not null
);
create index contact_methods_user on contact_methods (user_id);

-- Quiet hours are minutes of the local day; null for none.
create table contact_settings (
  user_id integer primary key references users on delete cascade,
  quiet_from integer,
  quiet_until integer,
  quiet_zone text not null default '',
  -- Instants of recent codes and test messages.
  sent_at timestamptz[] not null default '{}',
  check (num_nonnulls(quiet_from, quiet_until) <> 1)
);

create table contact_rules (
  user_id integer not null references users on delete cascade,
  severity text not null check (severity in ('page', 'ticket')),
  place integer not null,
  method integer not null references contact_methods on delete cascade,
  delay_seconds integer not null,
  primary key (user_id, severity, place)
);
create index contact_rules_method on contact_rules (method);

-- A person takes part in on-call as a channel with the id of the user. Each contact method that
-- receives pages of the project is a channel with the id of the method.
alter table notification_channels add column person integer references users on delete cascade;
alter table notification_channels
  add column contact_method integer references contact_methods on delete cascade;
create unique index notification_channels_person on notification_channels (org, project, person)
  where person is not null and contact_method is null;
create unique index notification_channels_contact
  on notification_channels (org, project, contact_method) where contact_method is not null;
create index notification_channels_of_person on notification_channels (person)
  where person is not null;
create index notification_channels_of_contact on notification_channels (contact_method)
  where contact_method is not null;
