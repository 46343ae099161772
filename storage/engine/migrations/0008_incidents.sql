-- When something breaks: outages and who was told of them, incidents with what people write, the
-- ladders that page them, who is on call, and the outbox that all of it leaves by.

create table oncall_schedules (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  name text not null,
  anchor_at timestamptz not null,
  shift_seconds integer not null,
  -- An IANA name; empty counts elapsed time.
  timezone text not null default '',
  -- Of the token by which calendar software reads it; null until one is asked for.
  calendar_token_hash bytea,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index oncall_schedules_uid on oncall_schedules (uid);
create index oncall_schedules_project on oncall_schedules (org, project);
create index oncall_schedules_token on oncall_schedules (calendar_token_hash)
  where calendar_token_hash is not null;

-- Participants take turns by their place. A channel that takes part cannot be deleted. That is asked
-- at the end, as a project goes with its channels and its schedules in any order.
create table oncall_participants (
  org integer not null,
  schedule integer not null,
  place integer not null,
  channel integer not null,
  primary key (org, schedule, place),
  foreign key (org, schedule) references oncall_schedules (org, id) on delete cascade,
  foreign key (org, channel) references notification_channels (org, id)
    deferrable initially deferred
);
create index oncall_participants_channel on oncall_participants (org, channel);

-- One that is over goes with its channel; one that is not keeps the channel, as transactions see to.
create table oncall_overrides (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  schedule integer not null,
  channel integer not null,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  created_at timestamptz not null,
  primary key (org, id),
  foreign key (org, schedule) references oncall_schedules (org, id) on delete cascade,
  foreign key (org, channel) references notification_channels (org, id) on delete cascade,
  check (ends_at > starts_at)
);
create index oncall_overrides_uid on oncall_overrides (uid);
create index oncall_overrides_schedule on oncall_overrides (org, schedule, ends_at);
create index oncall_overrides_channel on oncall_overrides (org, channel);

create table escalation_policies (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  name text not null,
  repeat_last boolean not null,
  -- Of each step, how long after the beginning it is due.
  after_seconds integer[] not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index escalation_policies_uid on escalation_policies (uid);
create index escalation_policies_project on escalation_policies (org, project);

-- Whom a step pages. What a step names cannot be deleted.
create table escalation_targets (
  org integer not null,
  policy integer not null,
  step integer not null,
  place integer not null,
  channel integer,
  schedule integer,
  primary key (org, policy, step, place),
  foreign key (org, policy) references escalation_policies (org, id) on delete cascade,
  foreign key (org, channel) references notification_channels (org, id)
    deferrable initially deferred,
  foreign key (org, schedule) references oncall_schedules (org, id)
    deferrable initially deferred,
  check (num_nonnulls(channel, schedule) = 1)
);
create index escalation_targets_channel on escalation_targets (org, channel);
create index escalation_targets_schedule on escalation_targets (org, schedule);

alter table monitors add column escalation_policy integer;
alter table monitors add foreign key (org, escalation_policy)
  references escalation_policies (org, id);
create index monitors_escalation_policy on monitors (org, escalation_policy)
  where escalation_policy is not null;

create table incidents (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  monitor integer,
  -- Of an alert that another system sent: its fingerprint.
  external_key text,
  -- Rises with every event of the incident.
  seq integer not null,
  title text not null,
  status text not null check (status in ('investigating', 'identified', 'monitoring', 'resolved')),
  impact text not null check (impact in ('none', 'minor', 'major', 'critical')),
  source text not null check (source in ('manual', 'api', 'auto')),
  started_at timestamptz not null,
  resolved_at timestamptz,
  acknowledged_at timestamptz,
  acknowledged_by integer references users on delete set null,
  acknowledged_label text not null default '',
  -- The ladder: steps that were taken, and when to look at it again; null while it stands still.
  escalation_policy integer,
  escalation_step integer not null default 0,
  last_escalated_at timestamptz,
  escalate_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, monitor) references monitors (org, id) on delete set null (monitor),
  foreign key (org, escalation_policy) references escalation_policies (org, id)
    on delete set null (escalation_policy),
  check ((status = 'resolved') = (resolved_at is not null))
);
create unique index incidents_uid on incidents (org, uid);
create index incidents_uid_alone on incidents (uid);
create index incidents_project on incidents (org, project, id desc);
create index incidents_open on incidents (org, project, id desc) where status <> 'resolved';
create unique index incidents_one_of_alert on incidents (org, project, external_key)
  where external_key is not null and status <> 'resolved';
create unique index incidents_one_of_monitor on incidents (org, monitor)
  where source = 'auto' and monitor is not null and status <> 'resolved';
create index incidents_monitor on incidents (org, monitor) where monitor is not null;
create index incidents_escalate on incidents (escalate_at) where escalate_at is not null;

create table incident_updates (
  org integer not null,
  incident integer not null,
  seq integer not null,
  uid uuid not null,
  -- Null for a plain note.
  status text,
  body text not null,
  public boolean not null,
  author integer references users on delete set null,
  -- Empty where a machine wrote it.
  author_label text not null,
  created_at timestamptz not null,
  primary key (org, incident, seq),
  foreign key (org, incident) references incidents (org, id) on delete cascade
);

create table postmortems (
  org integer not null,
  incident integer not null,
  uid uuid not null,
  body text not null,
  -- The revision of the service's declaration that governed the outage.
  declaration_revision integer,
  author integer references users on delete set null,
  author_label text not null,
  published_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, incident),
  foreign key (org, incident) references incidents (org, id) on delete cascade
);

-- One step of a ladder that was taken: whom it paged, and whom it could not, by their names then.
create table incident_pages (
  org integer not null,
  incident integer not null,
  id integer generated always as identity,
  step integer not null,
  at timestamptz not null,
  paged text[] not null,
  unreachable text[] not null,
  primary key (org, incident, id),
  foreign key (org, incident) references incidents (org, id) on delete cascade
);

-- From a monitor's going down to its coming up. Announced once, by who then announces the recovery.
create table outages (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  monitor integer not null,
  -- The instants of the results that began and ended it.
  began_at timestamptz not null,
  ended_at timestamptz,
  -- The message of the failure that began it.
  why text not null,
  announced_at timestamptz,
  -- Why nobody was told yet.
  suppressed_by text check (suppressed_by in
    ('waiting', 'rechecking', 'dependency', 'maintenance', 'paused', 'unknown')),
  -- Extra checks were asked for: what is younger than this is an answer, and until when one is
  -- waited for.
  waits_since timestamptz,
  waits_until timestamptz,
  -- When to look again: at what is held, and whether to tell once more. Null: not by time.
  next_check_at timestamptz,
  incident integer,
  -- When it was told last, of renotifying.
  notified_at timestamptz,
  primary key (org, id),
  foreign key (org, monitor) references monitors (org, id) on delete cascade,
  foreign key (org, incident) references incidents (org, id) on delete set null (incident)
);
create unique index outages_open on outages (org, monitor) where ended_at is null;
create index outages_monitor on outages (org, monitor, began_at desc);
create index outages_next_check on outages (next_check_at) where ended_at is null and next_check_at is not null;

-- An onset asks what its monitor depends on to be checked once more.
alter table jobs drop constraint jobs_reason_check;
alter table jobs add constraint jobs_reason_check
  check (reason in ('confirm', 'extra', 'asked', 'onset'));

-- Signals are taken by monitor, in their order.
create index status_changes_monitor on status_changes (org, monitor, id);

-- Where events go. What fails rests as a whole.
create table destinations (
  org integer not null,
  id integer generated always as identity,
  webhook integer,
  channel integer,
  -- In a row, since something was delivered.
  failures integer not null default 0,
  backoff_until timestamptz,
  primary key (org, id),
  foreign key (org, webhook) references webhooks (org, id) on delete cascade,
  foreign key (org, channel) references notification_channels (org, id) on delete cascade,
  unique (org, webhook),
  unique (org, channel),
  check (num_nonnulls(webhook, channel) = 1)
);

-- One event for one destination. Within a stream (that of an incident, or of a monitor without one)
-- a destination is sent one after the other.
create table outbox (
  org integer not null,
  id bigint generated always as identity,
  uid uuid not null,
  project integer not null,
  topic text not null check (topic in ('incident_event', 'monitor_transition')),
  destination integer not null,
  stream uuid not null,
  -- What belongs together for people, as a thread: an incident, or an outage without one.
  thread uuid not null,
  event text not null,
  payload jsonb not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'dead')),
  -- Nothing earlier of the stream is undelivered; never becomes false again.
  ready boolean not null,
  attempts integer not null default 0,
  -- The next try, or while it is leased the lease's end.
  due_at timestamptz not null,
  -- Of who holds it: a new one with each claim.
  lease uuid,
  last_error text not null default '',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, destination) references destinations (org, id) on delete cascade
) with (fillfactor = 70);
create index outbox_ready on outbox (org, destination, due_at, id)
  where status = 'pending' and ready;
create index outbox_stream on outbox (org, destination, stream, id) where status <> 'delivered';
-- What is held, few at any time: counted by destination before more is leased.
create index outbox_leased on outbox (org, destination) where lease is not null;
create index outbox_dead on outbox (updated_at desc, id) where status = 'dead';
create index outbox_delivered on outbox (updated_at) where status = 'delivered';
create index outbox_uid on outbox (uid);
create index outbox_thread on outbox (org, thread, id);

-- Whom people's messages of one conversation went to, and what the service called its first.
create table notification_threads (
  org integer not null,
  thread uuid not null,
  destination integer not null,
  external_id text not null default '',
  created_at timestamptz not null,
  primary key (org, thread, destination),
  foreign key (org, destination) references destinations (org, id) on delete cascade
);

-- What was collected before anybody read it is history; whoever is down is told of as it is.
delete from status_changes;
insert into status_changes (org, monitor, at, old_status, new_status, committed_at)
select org, monitor, since, 'pending', 'down', clock_timestamp()
from monitor_states where status = 'down';
