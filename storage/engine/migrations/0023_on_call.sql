-- Alerts of a monitor, of a service, or of objects with matching labels wait until the end. Matchers
-- are in the syntax of Alertmanager.
create table mutes (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  monitor integer,
  service integer,
  matchers text not null default '',
  reason text not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  author_label text not null,
  created_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, monitor) references monitors (org, id) on delete cascade,
  foreign key (org, service) references services (org, id) on delete cascade,
  check (num_nonnulls(monitor, service, nullif(matchers, '')) = 1),
  check (ends_at >= starts_at)
);
create index mutes_uid on mutes (uid);
create index mutes_project on mutes (org, project, ends_at);
create index mutes_monitor on mutes (org, monitor) where monitor is not null;
create index mutes_service on mutes (org, service) where service is not null;

-- Labels of the external alert that opened the incident.
alter table incidents add column labels jsonb;

-- Routes of external alerts, in their order. The last one can have no matchers: the default. A route
-- without a target matches and pages nobody, since its service was deleted.
create table alert_routes (
  org integer not null,
  project integer not null,
  place integer not null,
  matchers text not null,
  service integer,
  policy integer,
  primary key (org, project, place),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, service) references services (org, id) on delete set null (service),
  foreign key (org, policy) references escalation_policies (org, id) on delete set null (policy),
  check (num_nonnulls(service, policy) <= 1)
);
create index alert_routes_service on alert_routes (org, service) where service is not null;
create index alert_routes_policy on alert_routes (org, policy) where policy is not null;

-- Links of messages that a person has answered. A link is used once; `event` is the message.
create table message_answers (
  event uuid primary key,
  org integer not null,
  incident integer not null,
  user_id integer references users on delete set null,
  action text not null,
  answered_at timestamptz not null,
  foreign key (org, incident) references incidents (org, id) on delete cascade
);
create index message_answers_incident on message_answers (org, incident);
create index message_answers_user on message_answers (user_id) where user_id is not null;

-- Time after which an acknowledgement expires and the escalation continues; 0 for never.
alter table escalation_policies add column ack_timeout_seconds integer not null default 0;
-- When the acknowledgement in force expires, and when the last one expired. The first acknowledgement
-- stays in `acknowledged_at`.
alter table incidents add column ack_expires_at timestamptz;
alter table incidents add column ack_expired_at timestamptz;
