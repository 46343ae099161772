-- The schema of the first release, grouped by feature in the order of tests/house/order.py.
--
-- A key inside the database is a small integer that is led by the organization. An id that clients
-- see is a UUIDv7 in a column `uid`. Partitioned tables have no foreign keys, since ATTACH would
-- lock the tables that they refer to.

-- engine ------------------------------------------------------------------------------------------

-- An instant enters and leaves SQL as whole microseconds since the epoch. The function is stable
-- and not immutable: timestamptz + interval is stable, and the planner inlines only an equal
-- volatility.
create function at(microseconds bigint) returns timestamptz
language sql stable strict parallel safe
return timestamptz 'epoch' + microseconds * interval '1 microsecond';

-- Returns true, or undoes the whole statement with serialization_failure, so that the caller can
-- try another way.
create function or_conflict(holds boolean) returns boolean
language plpgsql volatile
as $$
begin
  if not holds then
    raise exception 'a statement met what another wrote' using errcode = '40001';
  end if;
  return true;
end
$$;

-- Triggers make a table append-only. A revoked privilege does not bind the owner of a table, and
-- the daemon is the owner.
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;

create function refuse_to_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are only ever added', tg_table_name using errcode = 'P0001';
end $$;

-- accounts ----------------------------------------------------------------------------------------

create table organizations (
  id integer generated always as identity primary key,
  uid uuid not null unique,
  slug text not null unique,
  name text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create table projects (
  org integer not null references organizations,
  id integer generated always as identity,
  uid uuid not null,
  slug text not null,
  name text not null,
  -- Raised by each change of a dependency between services, so that a stale edit is refused.
  graph_generation integer not null default 0,
  sla_report_weekly boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  unique (org, slug)
);
create index projects_uid on projects (uid);

create table users (
  id integer generated always as identity primary key,
  uid uuid not null unique,
  email text not null,
  -- False for an address that an OpenID provider only claims: it is shown and identifies no
  -- account.
  email_verified boolean not null default true,
  display_name text not null default '',
  is_global_admin boolean not null default false,
  -- PHC string of argon2id; null if the account signs in by single sign-on only.
  password text,
  -- The encrypted secret of one-time passwords (RFC 6238), pending until `totp_enabled_at`.
  totp_ciphertext bytea,
  totp_enabled_at timestamptz,
  -- The last time step of which a code was accepted. No step at or before it is accepted again.
  totp_step bigint not null default 0,
  -- Instants of recent wrong codes.
  totp_wrong_at timestamptz[] not null default '{}',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_active_at timestamptz,
  constraint users_totp_check check (totp_enabled_at is null or totp_ciphertext is not null)
);
create unique index users_email on users (lower(email)) where email_verified and email <> '';

-- Each code replaces a one-time password once. Only its SHA-256 is kept.
create table recovery_codes (
  user_id integer not null references users on delete cascade,
  code_hash bytea not null,
  primary key (user_id, code_hash)
);

-- An account at an OpenID provider (OpenID Connect Core 1.0, section 2: iss and sub together).
create table user_identities (
  issuer text not null,
  subject text not null,
  user_id integer not null references users on delete cascade,
  created_at timestamptz not null,
  primary key (issuer, subject)
);
create index user_identities_user on user_identities (user_id);

-- Unfinished sign-ins at a provider. Each is used once, by the browser that began it.
create table sign_on_flows (
  state_hash bytea primary key,
  browser_hash bytea not null,
  issuer text not null,
  nonce text not null,
  verifier text not null,
  redirect text not null,
  -- The user whose account the identity is linked to; null for a sign-in.
  link_user integer references users on delete cascade,
  expires_at timestamptz not null
);
create index sign_on_flows_expiry on sign_on_flows (expires_at);

create table sessions (
  token_hash bytea primary key,
  uid uuid not null unique,
  user_id integer not null references users on delete cascade,
  client text not null default '',
  -- The OpenID provider that the user signed in with, so that a sign-out can continue there.
  issuer text,
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_user on sessions (user_id);
create index sessions_expiry on sessions (expires_at);

-- Requests for a new password, by the address that was given. An unknown address is stored too, so
-- that both cases take the same time.
create table reset_requests (
  address text primary key,
  attempts integer not null default 0,
  due_at timestamptz not null
);
create index reset_requests_due on reset_requests (due_at);

-- The token of the newest reset mail of an account, as its SHA-256. It is used once.
create table password_resets (
  user_id integer primary key references users on delete cascade,
  token_hash bytea not null unique,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

create type role as enum ('viewer', 'editor', 'project_admin', 'org_admin');

create table memberships (
  org integer not null references organizations,
  id integer generated always as identity,
  uid uuid not null,
  user_id integer not null references users on delete cascade,
  -- Null for the whole organization.
  project integer,
  role role not null,
  created_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  check (role <> 'org_admin' or project is null)
);
create unique index memberships_one on memberships (org, user_id, coalesce(project, 0));
create index memberships_user on memberships (user_id);
create index memberships_uid on memberships (uid);

create table api_tokens (
  org integer not null references organizations,
  id integer generated always as identity,
  uid uuid not null,
  project integer,
  name text not null,
  role role not null,
  -- Null grants all actions of the role. A list only narrows them.
  actions text[],
  token_hash bytea not null,
  created_by integer references users on delete set null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  check (role <> 'org_admin' or project is null)
);
create index api_tokens_hash on api_tokens (token_hash);
create index api_tokens_uid on api_tokens (uid);

-- Organization 0 is the instance. The target contains ids and the ends of transitions, never
-- bodies.
create table audit_entries (
  org integer not null,
  id bigint generated always as identity,
  uid uuid not null,
  actor_user integer,
  actor_label text not null,
  via_token boolean not null,
  action text not null,
  target text not null,
  created_at timestamptz not null,
  primary key (org, id)
);
create trigger audit_entries_append_only before update or delete on audit_entries
  for each row execute function refuse_change();

-- Settings of the instance. A setting without a row has its default.
create table settings (
  name text primary key,
  uid uuid not null default gen_random_uuid() unique,
  value jsonb not null,
  -- One secret, such as the password of the mail server, encrypted for this `uid`.
  secret_ciphertext bytea,
  updated_at timestamptz not null
);

-- notifications -----------------------------------------------------------------------------------

-- `config_ciphertext` contains the secret settings, as one JSON object. `config` has a blank for
-- each.
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

-- A webhook receives the incidents of its project, or of the organization if `project` is null.
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

-- A destination is a webhook, a channel, a status page or one subscriber of it. A status page gets
-- an event once, and the event is then copied for each subscriber. The section of status pages adds
-- the foreign keys of `page` and `subscriber`.
create table destinations (
  org integer not null,
  id integer generated always as identity,
  webhook integer,
  channel integer,
  page integer,
  subscriber integer,
  -- Consecutive failures. A destination that fails backs off as a whole.
  failures integer not null default 0,
  backoff_until timestamptz,
  primary key (org, id),
  foreign key (org, webhook) references webhooks (org, id) on delete cascade,
  foreign key (org, channel) references notification_channels (org, id) on delete cascade,
  unique (org, webhook),
  unique (org, channel),
  unique (org, page),
  unique (org, subscriber),
  check (num_nonnulls(webhook, channel, page, subscriber) = 1)
);

-- One event for one destination. A destination receives the events of a stream one after the other.
create table outbox (
  org integer not null,
  id bigint generated always as identity,
  uid uuid not null,
  -- Null for a confirmation of a subscription to a page of the organization.
  project integer,
  topic text not null check (topic in ('incident_event', 'monitor_transition', 'subscription')),
  destination integer not null,
  -- The incident, or the monitor if there is no incident.
  stream uuid not null,
  -- What people see as one thread: the incident, or the outage if there is no incident.
  thread uuid not null,
  event text not null,
  payload jsonb not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'dead')),
  -- True if no earlier event of the stream is undelivered. It never becomes false again.
  ready boolean not null,
  attempts integer not null default 0,
  -- The next attempt, or the end of the lease.
  due_at timestamptz not null,
  -- The id of the claim; each claim has a new one.
  lease uuid,
  -- The last subscriber of the page for whom a copy of this event was written.
  enqueued_through integer not null default 0,
  last_error text not null default '',
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, destination) references destinations (org, id) on delete cascade
) with (fillfactor = 70);
create index outbox_ready on outbox (org, destination, due_at, id)
  where status = 'pending' and ready;
create index outbox_stream on outbox (org, destination, stream, id) where status <> 'delivered';
-- Leased events are few. They are counted by destination before more are leased.
create index outbox_leased on outbox (org, destination) where lease is not null;
create index outbox_dead on outbox (updated_at desc, id) where status = 'dead';
create index outbox_delivered on outbox (updated_at) where status = 'delivered';
create index outbox_uid on outbox (uid);
create index outbox_thread on outbox (org, thread, id);

-- The destinations that received the first message of a thread. `external_id` is the id that the
-- destination's service gave to that message.
create table notification_threads (
  org integer not null,
  thread uuid not null,
  destination integer not null,
  external_id text not null default '',
  created_at timestamptz not null,
  primary key (org, thread, destination),
  foreign key (org, destination) references destinations (org, id) on delete cascade
);

-- oncall ------------------------------------------------------------------------------------------

create table oncall_schedules (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  name text not null,
  anchor_at timestamptz not null,
  shift_seconds integer not null,
  -- An IANA name. Empty counts elapsed time.
  timezone text not null default '',
  -- The hash of the token by which calendar software reads the schedule.
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

-- Participants take shifts in the order of `place`. A channel that participates cannot be deleted.
-- The check is deferred, since a project is deleted with its channels and schedules in any order.
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

-- A past override is deleted with its channel. Transactions refuse to delete the channel of
-- another.
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
  -- The delay of each step after the start of the escalation.
  after_seconds integer[] not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index escalation_policies_uid on escalation_policies (uid);
create index escalation_policies_project on escalation_policies (org, project);

-- The targets that a step pages. A channel or schedule that is a target cannot be deleted.
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

-- scheduling --------------------------------------------------------------------------------------

-- A shard is the unit of scheduling and sealing: one region, with `org` 0. If the database is
-- sharded by organization, it is the share of one organization in one region.
create table shards (
  id integer generated always as identity primary key,
  org integer not null default 0,
  region text not null,
  -- Every window that is due at or before this instant is reserved. It only moves forward.
  reserved_through timestamptz not null,
  -- Raised by each edit of a schedule, so that a process with older terms reserves nothing.
  generation bigint not null default 1,
  -- The fence: results older than this, less the timeout of a run and the grace, are history.
  sealed_through timestamptz not null,
  -- The fence of the last sealing that was finished.
  settled_through timestamptz not null,
  -- Hours of every monitor are rolled up to this instant.
  rolled_up_through timestamptz not null,
  unique (org, region)
);

-- Windows that are reserved and not yet settled, at most 50 in a row. A window is written to the
-- expected-run ledger once, with its verdict; until then this row shows that it is reserved.
create table run_batches (
  id bigint generated always as identity primary key,
  shard integer not null,
  kind text not null check (kind in ('run', 'push', 'composite', 'canary')),
  orgs integer[] not null,
  monitors integer[] not null,
  due_ats timestamptz[] not null,
  seal_ats timestamptz[] not null,
  claim_untils timestamptz[] not null,
  -- False if the windows could not be claimed any more when they were reserved.
  published boolean not null,
  first_due timestamptz not null,
  claim_until timestamptz not null,
  first_seal timestamptz not null,
  last_seal timestamptz not null,
  holder uuid,
  lease_until timestamptz,
  claimed boolean not null default false
);
create index run_batches_open on run_batches (shard, first_due) where kind = 'run' and published;
create index run_batches_canary on run_batches (shard, first_due)
  where kind = 'canary' and published;
-- Composite windows are few, since they are settled as soon as they are due.
create index run_batches_composite on run_batches (first_due)
  where kind = 'composite' and published;
create index run_batches_seal on run_batches (shard, first_seal);

-- Runs without a window: confirm runs, extra runs after a change or an outage, and runs that a user
-- requests.
create table jobs (
  org integer not null,
  id bigint generated always as identity,
  uid uuid not null,
  shard integer not null,
  monitor integer not null,
  -- The revision of the monitor that was handed out. A result of an older one is not stored.
  revision integer not null default 0,
  reason text not null check (reason in ('confirm', 'extra', 'asked', 'onset')),
  due_at timestamptz not null,
  claim_until timestamptz not null,
  holder uuid,
  lease_until timestamptz,
  primary key (org, id)
);
create index jobs_due on jobs (shard, due_at);
create unique index jobs_one on jobs (org, monitor, reason);

-- Canary runs in progress. The keys are the limits: one run per slot of a region, and one per
-- monitor.
create table canary_runs (
  region text not null,
  slot integer not null check (slot > 0),
  org integer not null,
  monitor integer not null,
  -- Null for a run without a window.
  due_at timestamptz,
  holder uuid not null,
  -- Set for an agent, which has no presence. A process holds its run as long as it is present.
  lease_until timestamptz,
  began_at timestamptz not null,
  primary key (region, slot),
  unique (org, monitor)
);

-- One row for a process and an uninterrupted time of its presence.
create table presences (
  process uuid not null,
  from_at timestamptz not null,
  through_at timestamptz not null,
  host text not null,
  roles text[] not null,
  -- The regions that the process probes in.
  regions text[] not null default '{}',
  version text not null,
  -- The process serves the push routes. All reports that it received until `through_at` are
  -- committed.
  accepts_pushes boolean not null,
  -- The process ended in order. Otherwise its last 15 s count as time without reception.
  ended boolean not null default false,
  primary key (process, from_at)
) with (fillfactor = 60);
create index presences_through on presences (through_at);

-- monitors ----------------------------------------------------------------------------------------

create table monitors (
  org integer not null references organizations,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  shard integer not null references shards,
  slug text not null,
  name text not null,
  description text not null default '',
  type text not null,
  target text not null default '',
  method text not null default 'GET',
  interval_seconds integer not null,
  timeout_seconds integer not null,
  retries integer not null default 0,
  failure_threshold integer not null default 1,
  confirm_interval_seconds integer not null default 0,
  renotify_seconds integer not null default 0,
  grace_seconds integer not null default 60,
  conditions text[] not null default '{}',
  tags text[] not null default '{}',
  depends_on integer[] not null default '{}',
  config jsonb not null default '{}',
  -- The secret settings of `config`, encrypted as one JSON object.
  config_ciphertext bytea,
  enabled boolean not null default true,
  auto_incident boolean not null default true,
  escalation_policy integer,
  push_token_hash bytea,
  push_token_ciphertext bytea,
  -- Raised by every write, since a result of an older revision can be of another target.
  revision integer not null default 1,
  -- The bundle provider: `api`, or the name of a file provider. Empty if people edit the monitor.
  managed_by text not null default '',
  -- The uid in the bundle, and the file that contains it.
  bundle_uid text,
  bundle_path text not null default '',
  -- Since when the bundle no longer names the monitor.
  orphaned_at timestamptz,
  -- The service that replaces the monitor. The section of retirement adds the foreign key.
  superseded_by integer,
  retired_at timestamptz,
  created_by integer,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  unique (org, project, slug),
  foreign key (org, project) references projects (org, id),
  foreign key (org, escalation_policy) references escalation_policies (org, id),
  constraint monitors_retired_are_paused check (retired_at is null or not enabled)
);
create index monitors_uid on monitors (uid);
-- Some queries know only the number of a monitor, which is unique by itself.
create index monitors_id on monitors (id);
create index monitors_shard on monitors (shard);
create index monitors_push_token on monitors (push_token_hash) where push_token_hash is not null;
create index monitors_escalation_policy on monitors (org, escalation_policy)
  where escalation_policy is not null;

-- A schedule term is valid for windows due after `from_at`, up to and including the `from_at` of
-- the next term.
create table monitor_terms (
  org integer not null,
  monitor integer not null,
  from_at timestamptz not null,
  shard integer not null,
  anchor timestamptz not null,
  interval_seconds integer not null,
  timeout_seconds integer not null,
  grace_seconds integer not null,
  enabled boolean not null,
  primary key (org, monitor, from_at),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
create index monitor_terms_shard on monitor_terms (shard, org, monitor);

create table monitor_channels (
  org integer not null,
  monitor integer not null,
  channel integer not null,
  primary key (org, monitor, channel),
  foreign key (org, monitor) references monitors (org, id) on delete cascade,
  foreign key (org, channel) references notification_channels (org, id) on delete cascade
);
create index monitor_channels_channel on monitor_channels (org, channel);

-- Secrets of a project, which monitors name in their `…_ref` settings. Only a probe receives a
-- value.
create table project_secrets (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  name text not null,
  value_ciphertext bytea not null,
  created_at timestamptz not null,
  -- The last replacement of the value; null for the first value.
  rotated_at timestamptz,
  -- The last change of name or value, by which probers detect that their copy is old.
  updated_at timestamptz not null,
  primary key (org, id),
  unique (org, project, name),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index project_secrets_updated on project_secrets (updated_at);

-- Why a run of a monitor could not be prepared: one row per monitor, for the last time.
create table probe_errors (
  org integer not null,
  monitor integer not null,
  reason text not null check (reason in ('carrier_too_old', 'missing_reference', 'decrypt_failed')),
  at timestamptz not null,
  primary key (org, monitor),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);

-- A check that a worker of its region tests before it is saved. It is deleted with its answer.
create table check_tests (
  uid uuid primary key,
  region text not null,
  -- The check, encrypted if it contains secrets.
  document jsonb,
  document_ciphertext bytea,
  created_at timestamptz not null,
  claim_until timestamptz not null,
  holder uuid,
  -- The outcome of the run.
  answer jsonb,
  check ((document is null) <> (document_ciphertext is null))
);
create index check_tests_waiting on check_tests (region, created_at) where holder is null;

-- The children of a composite in [from_at, until_at), kept as long as its figures can be repaired.
-- No foreign key refers to the monitor, since the rows outlive the composite.
create table composite_terms (
  org integer not null,
  monitor integer not null,
  from_at timestamptz not null,
  until_at timestamptz not null default 'infinity',
  mode text not null check (mode in ('all', 'any', 'quorum')),
  quorum integer not null,
  children integer[] not null,
  primary key (org, monitor, from_at)
);
-- Finds the composites that a monitor is or was a child of.
create index composite_terms_children on composite_terms using gin (children);
create index composite_terms_until on composite_terms (until_at) where until_at < 'infinity';

-- Composites to compute before their next window, since a child changed its status or an edit
-- requires it. No foreign key refers to the monitor, so that a deletion of the composite does not
-- fail a transaction that stores a result of a child.
create table composite_wakeups (
  org integer not null,
  monitor integer not null,
  due_at timestamptz not null,
  primary key (org, monitor)
);
create index composite_wakeups_due on composite_wakeups (due_at);

-- Deleted monitors that were children of a composite, with their schedule terms.
create table deleted_monitors (
  org integer not null,
  id integer not null,
  project integer not null,
  type text not null,
  deleted_at timestamptz not null,
  primary key (org, id)
);
create index deleted_monitors_id on deleted_monitors (id);
create table deleted_monitor_terms (
  org integer not null,
  monitor integer not null,
  from_at timestamptz not null,
  shard integer not null,
  anchor timestamptz not null,
  interval_seconds integer not null,
  timeout_seconds integer not null,
  grace_seconds integer not null,
  enabled boolean not null,
  primary key (org, monitor, from_at),
  foreign key (org, monitor) references deleted_monitors (org, id) on delete cascade
);

-- All monitors that figures of the past can need. A deleted monitor belongs to no shard.
create view known_monitors as
  select org, id, project, shard, type from monitors
  union all
  select org, id, project, null, type from deleted_monitors;
create view known_terms as
  select org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds,
    enabled
  from monitor_terms
  union all
  select org, monitor, from_at, shard, anchor, interval_seconds, timeout_seconds, grace_seconds,
    enabled
  from deleted_monitor_terms;

-- results -----------------------------------------------------------------------------------------

-- The row is written only when it changes, so that a steady monitor costs no update.
create table monitor_states (
  org integer not null,
  monitor integer not null,
  version bigint not null default 1,
  status text not null default 'pending' check (status in ('pending', 'up', 'down')),
  -- Consecutive failures, counted up to the threshold.
  failures integer not null default 0,
  -- The instant of the result that caused the status.
  since timestamptz not null,
  -- The last heartbeat of a push monitor that missed pushes, so that no query has to search for it
  -- behind a long series of missed pushes.
  silent_since timestamptz,
  primary key (org, monitor),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
) with (fillfactor = 60);

create table heartbeats (
  org integer not null,
  monitor integer not null,
  ts timestamptz not null,
  latency_ms integer not null,
  code integer,
  dns_us integer,
  connect_us integer,
  tls_us integer,
  first_byte_us integer,
  up boolean not null,
  msg text,
  primary key (org, monitor, ts)
) partition by range (ts);

-- The verdicts of settled windows. A reserved window has no row yet.
create type verdict as enum ('covered', 'covered_late', 'withheld', 'missed');

create table expected_runs (
  org integer not null,
  monitor integer not null,
  due_at timestamptz not null,
  settled_at timestamptz not null,
  verdict verdict not null,
  reason text,
  primary key (org, monitor, due_at)
) partition by range (due_at);

-- Status changes that the alert processor has not processed.
create table status_changes (
  org integer not null,
  id bigint generated always as identity,
  monitor integer not null,
  at timestamptz not null,
  old_status text not null,
  new_status text not null,
  committed_at timestamptz not null,
  primary key (org, id)
);
create index status_changes_monitor on status_changes (org, monitor, id);

-- The /start and /log requests of a push monitor. They cover no window.
create table push_events (
  org integer not null,
  monitor integer not null,
  at timestamptz not null,
  kind text not null,
  msg text not null default '',
  primary key (org, monitor, at),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);

-- agents ------------------------------------------------------------------------------------------

create table agent_tokens (
  id integer generated always as identity primary key,
  uid uuid not null unique,
  name text not null,
  region text not null,
  token_hash bytea not null unique,
  created_by integer references users on delete set null,
  created_at timestamptz not null,
  -- The row of a revoked token is kept for the list.
  revoked_at timestamptz
);

-- The last heartbeat of each agent. `credential` names the source of its token: token:<uid> of
-- `agent_tokens`, or agent:<name> or catch-all of the configuration. `instance` distinguishes
-- agents that share a token.
create table agents (
  credential text not null,
  region text not null,
  instance uuid not null,
  name text not null,
  version text not null default '',
  workflow_kinds text[] not null default '{}',
  carrier integer not null default 1,
  -- The agent's id as the holder of leases.
  holder uuid not null unique,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  primary key (credential, region, instance)
) with (fillfactor = 60);

-- figures -----------------------------------------------------------------------------------------

-- Time by state in whole microseconds. Counts are of results. The SLI of an hour is exact.
create table monitor_hours (
  org integer not null,
  monitor integer not null,
  hour timestamptz not null,
  good_us bigint not null,
  bad_us bigint not null,
  unknown_us bigint not null,
  excluded_us bigint not null,
  up integer not null,
  total integer not null,
  primary key (org, monitor, hour)
);

create table monitor_days (
  org integer not null,
  monitor integer not null,
  day timestamptz not null,
  good_us bigint not null,
  bad_us bigint not null,
  unknown_us bigint not null,
  excluded_us bigint not null,
  up integer not null,
  total integer not null,
  primary key (org, monitor, day)
);

-- Ranges whose figures must be recomputed after late data.
create table repairs (
  org integer not null,
  id bigint generated always as identity,
  shard integer not null,
  monitor integer not null,
  from_at timestamptz not null,
  to_at timestamptz not null,
  reason text not null default 'late_result',
  created_at timestamptz not null,
  attempts integer not null default 0,
  due_at timestamptz not null,
  last_error text,
  primary key (org, id)
);
create index repairs_due on repairs (due_at);

-- services ----------------------------------------------------------------------------------------

create table services (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  slug text not null,
  name text not null,
  description text not null default '',
  -- The route of the service's pages: an escalation policy, or else an on-call schedule.
  escalation_policy integer,
  oncall_schedule integer,
  -- The bundle provider, as in `monitors`.
  managed_by text not null default '',
  bundle_uid text,
  bundle_path text not null default '',
  orphaned_at timestamptz,
  -- The sealed time is [materialization_start, sealed_through), both whole minutes; null before the
  -- first declaration. Time before the start, down to backfill_from, is still to be computed.
  materialization_start timestamptz,
  sealed_through timestamptz,
  backfill_from timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  unique (org, project, slug),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, escalation_policy) references escalation_policies (org, id)
    deferrable initially deferred,
  foreign key (org, oncall_schedule) references oncall_schedules (org, id)
    deferrable initially deferred
);
create index services_uid on services (uid);
create index services_escalation_policy on services (org, escalation_policy)
  where escalation_policy is not null;
create index services_oncall_schedule on services (org, oncall_schedule)
  where oncall_schedule is not null;

-- The declarations of a service, never deleted. Of two with the same `effective_at` the later
-- revision is in force.
create table service_revisions (
  org integer not null,
  service integer not null,
  revision integer not null,
  uid uuid not null,
  effective_at timestamptz not null,
  -- Earlier than effective_at only for the first revision, if the past was computed from it.
  governs_from timestamptz not null,
  -- All members in the declared order, and the SLI members.
  monitors integer[] not null,
  sli integer[] not null,
  mode text not null check (mode in ('all', 'any', 'quorum')),
  healthy_min integer not null,
  degraded_min integer not null,
  region_mode text not null check (region_mode in ('per_region', 'any_region', 'all_regions')),
  healthy_min_regions integer not null,
  degraded_min_regions integer not null,
  missing_data text not null check (missing_data in ('unknown', 'bad', 'ignore')),
  active_multiplier integer not null,
  active_floor_us bigint not null,
  created_at timestamptz not null,
  created_by integer references users on delete set null,
  created_by_label text not null,
  primary key (org, service, revision),
  foreign key (org, service) references services (org, id) on delete cascade
);
-- Finds the services that a monitor is or was a member of.
create index service_revisions_monitors on service_revisions using gin (monitors);

-- Parts of a revision in which the regions and intervals of the members did not change.
create table service_epochs (
  org integer not null,
  service integer not null,
  seq integer not null,
  uid uuid not null,
  revision integer not null,
  effective_at timestamptz not null,
  snapshot_hash text not null,
  members integer not null,
  primary key (org, service, seq),
  unique (org, service, effective_at),
  foreign key (org, service) references services (org, id) on delete cascade
);

-- Sealed minutes. Consecutive equal minutes are one row, with the microseconds of each minute. Rows
-- never overlap, and none crosses midnight in UTC.
create table service_minutes (
  org integer not null,
  service integer not null,
  from_at timestamptz not null,
  until_at timestamptz not null,
  epoch integer not null,
  good_us integer not null,
  bad_us integer not null,
  unknown_us integer not null,
  excluded_us integer not null,
  healthy_us integer not null,
  degraded_us integer not null,
  down_us integer not null,
  health_unknown_us integer not null,
  primary key (org, service, from_at),
  foreign key (org, service) references services (org, id) on delete cascade,
  check (until_at > from_at)
);
-- Sums over `minutes` minutes, kept longer than those.
create table service_hours (
  org integer not null,
  service integer not null,
  start timestamptz not null,
  epoch integer not null,
  minutes integer not null,
  good_us bigint not null,
  bad_us bigint not null,
  unknown_us bigint not null,
  excluded_us bigint not null,
  healthy_us bigint not null,
  degraded_us bigint not null,
  down_us bigint not null,
  health_unknown_us bigint not null,
  primary key (org, service, start, epoch),
  foreign key (org, service) references services (org, id) on delete cascade
);
create table service_days (
  like service_hours including all,
  foreign key (org, service) references services (org, id) on delete cascade
);

create table service_dependencies (
  org integer not null,
  service integer not null,
  upstream integer not null,
  primary key (org, service, upstream),
  foreign key (org, service) references services (org, id) on delete cascade,
  foreign key (org, upstream) references services (org, id) on delete cascade,
  check (service <> upstream)
);
create index service_dependencies_upstream on service_dependencies (org, upstream);

-- The dependencies over time: an incident is evaluated by the graph at its start.
create table service_dependency_terms (
  org integer not null,
  service integer not null,
  upstream integer not null,
  from_at timestamptz not null,
  until_at timestamptz not null default 'infinity',
  primary key (org, service, upstream, from_at),
  foreign key (org, service) references services (org, id) on delete cascade,
  foreign key (org, upstream) references services (org, id) on delete cascade,
  check (until_at > from_at)
);
create index service_dependency_terms_upstream on service_dependency_terms (org, upstream);

-- maintenance -------------------------------------------------------------------------------------

create table maintenances (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  -- Null for the whole project.
  monitor integer,
  -- The series that generated it.
  series integer,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  reason text not null default '',
  created_at timestamptz not null,
  archived_at timestamptz,
  cancel_effective_at timestamptz,
  -- When the extra runs after its end were written.
  resumed_at timestamptz,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  check (ends_at > starts_at)
);
create index maintenances_uid on maintenances (uid);
create index maintenances_project on maintenances (org, project, starts_at desc);
create index maintenances_resume on maintenances (least(ends_at, cancel_effective_at))
  where resumed_at is null and archived_at is null;

-- Recurring maintenance: an RRULE (RFC 5545) that generates `maintenances` ahead.
create table maintenance_series (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  monitor integer,
  rrule text not null,
  starts_at timestamptz not null,
  duration_seconds integer not null,
  timezone text not null,
  reason text not null default '',
  -- Maintenances that start before this instant are generated.
  generated_through timestamptz not null,
  ended_at timestamptz,
  created_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
create index maintenance_series_uid on maintenance_series (uid);

-- The preview that a user confirms before past time changes. It expires, and is used once.
create table maintenance_previews (
  org integer not null,
  uid uuid not null,
  project integer not null,
  mutation text not null check (mutation in ('create', 'annul')),
  -- The maintenance to annul.
  maintenance integer,
  monitor integer,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  -- True if the preview lacks some services.
  approximate boolean not null default false,
  expires_at timestamptz not null,
  primary key (org, uid),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index maintenance_previews_expired on maintenance_previews (expires_at);

-- incidents ---------------------------------------------------------------------------------------

create table incidents (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  monitor integer,
  service integer,
  -- The fingerprint of an alert from another system.
  external_key text,
  -- Raised by each event of the incident.
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
  escalation_policy integer,
  -- The number of steps taken, and when the next step is due; null if the escalation has stopped.
  escalation_step integer not null default 0,
  last_escalated_at timestamptz,
  escalate_at timestamptz,
  -- The start of the escalation, if it is not created_at.
  escalation_started_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, monitor) references monitors (org, id) on delete set null (monitor),
  foreign key (org, service) references services (org, id) on delete set null (service),
  foreign key (org, escalation_policy) references escalation_policies (org, id)
    on delete set null (escalation_policy),
  check ((status = 'resolved') = (resolved_at is not null)),
  check (num_nonnulls(monitor, service) <= 1)
);
create unique index incidents_uid on incidents (org, uid);
create index incidents_uid_alone on incidents (uid);
create index incidents_project on incidents (org, project, id desc);
create index incidents_open on incidents (org, project, id desc) where status <> 'resolved';
create unique index incidents_one_of_alert on incidents (org, project, external_key)
  where external_key is not null and status <> 'resolved';
create unique index incidents_one_of_monitor on incidents (org, monitor)
  where source = 'auto' and monitor is not null and status <> 'resolved';
create unique index incidents_one_of_service on incidents (org, service)
  where source = 'auto' and service is not null and status <> 'resolved';
create index incidents_monitor on incidents (org, monitor) where monitor is not null;
create index incidents_service on incidents (org, service) where service is not null;
-- Finds the incidents that followed a change of the service or of its upstreams.
create index incidents_service_started on incidents (org, service, started_at)
  where service is not null;
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
  -- Empty for an automatic update.
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
  -- The revision of the service that was in force during the outage.
  declaration_revision integer,
  author integer references users on delete set null,
  author_label text not null,
  published_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, incident),
  foreign key (org, incident) references incidents (org, id) on delete cascade
);

-- One escalation step: the names of the targets that it paged and could not page.
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

-- alerting ----------------------------------------------------------------------------------------

-- The time from a monitor going down to its recovery.
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
  -- The first notification. The monitor or service that sent it also sends the recovery.
  announced_at timestamptz,
  -- Why the first notification is withheld.
  suppressed_by text check (suppressed_by in
    ('waiting', 'rechecking', 'dependency', 'maintenance', 'paused', 'unknown', 'delegated',
     'silenced')),
  -- Extra runs were requested: a later result is an answer, and how long to wait for one.
  waits_since timestamptz,
  waits_until timestamptz,
  -- When to check a suppression or send a reminder; null if no instant is known.
  next_check_at timestamptz,
  incident integer,
  -- The last notification.
  notified_at timestamptz,
  -- The service that paged; null for the monitor. `failed_open` is why the monitor paged although a
  -- service owns its paging.
  service integer,
  failed_open text,
  primary key (org, id),
  foreign key (org, monitor) references monitors (org, id) on delete cascade,
  foreign key (org, incident) references incidents (org, id) on delete set null (incident),
  foreign key (org, service) references services (org, id) on delete set null (service)
);
create unique index outages_open on outages (org, monitor) where ended_at is null;
create index outages_monitor on outages (org, monitor, began_at desc);
create index outages_next_check on outages (next_check_at)
  where ended_at is null and next_check_at is not null;

-- The paging settings of a service and its last evaluation, one row per service. The transaction
-- that locks the row decides alone about the service's episodes and about the paging of its
-- members.
create table service_alerting (
  org integer not null,
  service integer not null,
  owns_paging boolean not null default false,
  page_on text[] not null default '{down}',
  page_on_unknown boolean not null default false,
  confirm_evaluations integer not null default 2,
  renotify_seconds integer not null default 0,
  -- Raised by each edit of the settings. An evaluation of another generation does not count.
  generation integer not null default 1,
  edited_at timestamptz not null,
  due_at timestamptz not null,
  live_evaluated_at timestamptz,
  live_generation integer,
  live_revision integer,
  live_state text check (live_state in ('healthy', 'degraded', 'down', 'unknown', 'excluded')),
  -- Consecutive evaluations that would page, up to `confirm_evaluations`.
  live_streak integer not null default 0,
  -- Since when the state is the same.
  live_since timestamptz,
  live_reason text,
  live_error text,
  live_lease_until timestamptz,
  burn_evaluated_at timestamptz,
  burn_generation integer,
  burn_reason text,
  burn_error text,
  burn_lease_until timestamptz,
  primary key (org, service),
  foreign key (org, service) references services (org, id) on delete cascade
) with (fillfactor = 60);
create index service_alerting_due on service_alerting (due_at);

-- One continuous period in which the alert of a service is open.
create table service_episodes (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  service integer not null,
  began_at timestamptz not null,
  ended_at timestamptz,
  state text not null,
  incident integer,
  -- When the service paged; null while the page of a member counts for it.
  announced_at timestamptz,
  notified_at timestamptz,
  -- When the first of its pages was known to be delivered.
  page_delivered_at timestamptz,
  primary key (org, id),
  foreign key (org, service) references services (org, id) on delete cascade,
  foreign key (org, incident) references incidents (org, id) on delete set null (incident)
);
create unique index service_episodes_open on service_episodes (org, service)
  where ended_at is null;

-- objectives --------------------------------------------------------------------------------------

-- The objective over a window, as percent × 10⁴.
create table service_targets (
  org integer not null,
  service integer not null,
  "window" text not null check ("window" in ('24h', '7d', '30d', '90d')),
  uid uuid not null,
  objective integer not null,
  burn_enabled boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, service, "window"),
  foreign key (org, service) references services (org, id) on delete cascade
);
create table monitor_targets (
  org integer not null,
  monitor integer not null,
  "window" text not null check ("window" in ('24h', '7d', '30d', '90d')),
  uid uuid not null,
  objective integer not null,
  burn_enabled boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, monitor, "window"),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
create table project_targets (
  org integer not null,
  project integer not null,
  "window" text not null check ("window" in ('24h', '7d', '30d', '90d')),
  uid uuid not null,
  objective integer not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, project, "window"),
  foreign key (org, project) references projects (org, id) on delete cascade
);

-- Burn rules of a service's or monitor's objective, in the order of `place`, with their last
-- evaluation. Without rows, figures use the default rules and no notification is sent.
create table burn_rules (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  service integer,
  monitor integer,
  "window" text not null,
  place integer not null,
  long_seconds integer not null,
  short_seconds integer not null,
  threshold numeric(12, 4) not null,
  severity text not null check (severity in ('page', 'ticket')),
  firing boolean not null default false,
  firing_since timestamptz,
  last_verdict text check (last_verdict in ('firing', 'clear', 'unevaluated')),
  evaluated_at timestamptz,
  lease_until timestamptz,
  -- The last notification that it fires; null if none was sent or its end was notified.
  notified_at timestamptz,
  primary key (org, id),
  foreign key (org, service) references services (org, id) on delete cascade,
  foreign key (org, monitor) references monitors (org, id) on delete cascade,
  check (num_nonnulls(service, monitor) = 1)
);
create unique index burn_rules_monitor on burn_rules (org, monitor, "window", place)
  where monitor is not null;
create unique index burn_rules_service on burn_rules (org, service, "window", place)
  where service is not null;
create unique index burn_rules_uid on burn_rules (org, uid);

-- gate --------------------------------------------------------------------------------------------

-- Every revision of a policy, of a service or, if `service` is null, of the project. The revision
-- in force has no `ended_at`; a replaced or deleted one has.
create table gate_policies (
  org integer not null,
  id integer generated always as identity,
  project integer not null,
  service integer,
  revision integer not null,
  schema_version integer not null check (schema_version in (1, 2)),
  window_mode text not null check (window_mode in ('one', 'all')),
  "window" text check ("window" in ('24h', '7d', '30d', '90d')),
  clauses json not null,
  budget_consumed_percent integer not null,
  max_seal_lag_seconds integer not null,
  unknown_behavior text not null check (unknown_behavior in ('warn', 'block')),
  began_at timestamptz not null,
  ended_at timestamptz,
  author_label text not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, service) references services (org, id) on delete cascade,
  check ((window_mode = 'one') = ("window" is not null)),
  check (schema_version = 2 or window_mode = 'one')
);
create unique index gate_policies_revision
  on gate_policies (org, project, service, revision) nulls not distinct;
create unique index gate_policies_governing
  on gate_policies (org, project, service) nulls not distinct where ended_at is null;

-- Time-limited exceptions from a policy, each with its author and its end.
create table gate_overrides (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  service integer not null,
  policy_source text not null check (policy_source in ('service', 'project')),
  policy_revision integer not null,
  reason text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  actor_label text not null,
  actor_user uuid,
  via_token boolean not null,
  revoked_at timestamptz,
  revoked_reason text check (revoked_reason in ('manual', 'policy_changed', 'policy_deleted')),
  revoked_by_label text,
  revoked_by_user uuid,
  revoked_via_token boolean,
  primary key (org, id),
  foreign key (org, service) references services (org, id) on delete cascade,
  check ((revoked_at is null) = (revoked_reason is null)),
  check (expires_at > created_at)
);
create unique index gate_overrides_uid on gate_overrides (uid);
create index gate_overrides_service on gate_overrides (org, service, id);

-- The decisions of the gate with their evidence. A row never changes, even if its service or
-- project is deleted; therefore it contains values and no references.
create table gate_decisions (
  org integer not null,
  project integer not null,
  service integer not null,
  uid uuid not null,
  -- The milliseconds of the uid.
  evaluated_at timestamptz not null,
  service_uid uuid not null,
  service_slug text not null,
  service_name text not null,
  state text not null check (state in ('ALLOW', 'WARN', 'BLOCK', 'UNKNOWN', 'NOT_CONFIGURED')),
  action text check (action in ('ALLOW', 'WARN', 'BLOCK')),
  unoverridden_action text check (unoverridden_action in ('ALLOW', 'WARN', 'BLOCK')),
  reasons json not null,
  policy_revision integer,
  override_uid uuid,
  actor_label text not null,
  actor_user uuid,
  via_token boolean not null,
  evidence json not null,
  primary key (org, evaluated_at, uid),
  check ((state = 'NOT_CONFIGURED') = (action is null))
) partition by range (evaluated_at);
create index gate_decisions_project on gate_decisions (org, project, evaluated_at, uid);
create index gate_decisions_service on gate_decisions (org, service, evaluated_at, uid);
create trigger gate_decisions_only_added before update or delete on gate_decisions
  for each row execute function refuse_to_change();
create trigger gate_decisions_not_emptied before truncate on gate_decisions
  for each statement execute function refuse_to_change();

-- changes -----------------------------------------------------------------------------------------

-- A change of a service, known by its source and external id.
create table changes (
  org integer not null,
  id bigint generated always as identity,
  service integer not null,
  source text not null,
  external_id text not null,
  kind text not null check (kind in ('deploy', 'rollback', 'flag')),
  -- The instant of its start, or of its end if no start is recorded; and of its latest phase.
  started_at timestamptz not null,
  latest_at timestamptz not null,
  primary key (org, id),
  unique (org, service, source, external_id),
  foreign key (org, service) references services (org, id) on delete cascade
);
create index changes_timeline on changes (org, service, latest_at, id);
create index changes_started on changes (org, service, started_at);

create table change_phases (
  org integer not null,
  change bigint not null,
  uid uuid not null,
  phase text not null check (phase in ('started', 'succeeded', 'failed', 'cancelled')),
  occurred_at timestamptz not null,
  ref text not null,
  url text not null,
  decision uuid,
  actor_label text not null,
  actor_user uuid,
  via_token boolean not null,
  recorded_at timestamptz not null,
  primary key (org, change, uid),
  foreign key (org, change) references changes (org, id) on delete cascade
);
-- A change starts once and ends once.
create unique index change_phases_once on change_phases (org, change, (phase = 'started'));
create unique index change_phases_uid on change_phases (uid);
create trigger change_phases_only_added before update on change_phases
  for each row execute function refuse_to_change();
-- A phase is deleted only with its change, which is deleted with its service.
create trigger change_phases_stay before delete on change_phases
  for each row when (pg_trigger_depth() = 0) execute function refuse_to_change();
create trigger change_phases_not_emptied before truncate on change_phases
  for each statement execute function refuse_to_change();

-- status_pages ------------------------------------------------------------------------------------

create table status_pages (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  -- Null for a page of the whole organization.
  project integer,
  -- The public address, unique in the instance.
  slug text not null unique,
  title text not null,
  visibility text not null check (visibility in ('listed', 'unlisted', 'internal')),
  -- The token that opens an unlisted page: its hash, and encrypted for its editors.
  token_hash bytea,
  token_ciphertext bytea,
  -- Raised by each edit of the page or its components.
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

-- A component has one source. It stays without data if its monitor or service is deleted.
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

-- Host names that serve a status page without the console.
create table status_page_domains (
  domain text primary key check (domain = lower(domain)),
  org integer not null,
  page integer not null,
  foreign key (org, page) references status_pages (org, id) on delete cascade,
  unique (org, page)
);

create table subscribers (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  page integer not null,
  kind text not null check (kind in ('mail', 'webhook')),
  address text not null,
  -- The normalized address: a page has one subscription for it.
  address_key text not null,
  -- The uids of components; null for the whole page.
  components uuid[],
  -- The latest request, which takes effect when it is confirmed.
  requested_components uuid[],
  requested_at timestamptz not null,
  confirmed_at timestamptz,
  -- Consecutive permanent refusals of the address. After several the subscription is suspended.
  bounces integer not null default 0,
  suspended_at timestamptz,
  -- The token of the links that confirm and end the subscription.
  token_hash bytea not null unique,
  token_ciphertext bytea not null,
  created_at timestamptz not null,
  primary key (org, id),
  unique (org, page, kind, address_key),
  foreign key (org, page) references status_pages (org, id) on delete cascade
);
create index subscribers_uid on subscribers (uid);
create index subscribers_page on subscribers (org, page, id);
create index subscribers_unconfirmed on subscribers (requested_at) where confirmed_at is null;

-- The last confirmation mail to an address, by its SHA-256.
create table subscription_requests (
  address_hash bytea primary key,
  requested_at timestamptz not null
);
create index subscription_requests_at on subscription_requests (requested_at);

alter table destinations
  add foreign key (org, page) references status_pages (org, id) on delete cascade,
  add foreign key (org, subscriber) references subscribers (org, id) on delete cascade;

-- retirement --------------------------------------------------------------------------------------

alter table monitors
  add foreign key (org, superseded_by) references services (org, id)
    on delete set null (superseded_by);
create index monitors_superseded on monitors (org, superseded_by) where superseded_by is not null;

-- bundles -----------------------------------------------------------------------------------------

create unique index monitors_bundle on monitors (org, project, managed_by, bundle_uid)
  where bundle_uid is not null;
create unique index services_bundle on services (org, project, managed_by, bundle_uid)
  where bundle_uid is not null;

-- The process with the lease scans the directory of a file provider.
create table bundle_providers (
  provider text primary key,
  -- organization/project, organization/*, or empty for any.
  scope text not null,
  holder uuid not null,
  lease_until timestamptz not null,
  last_scan timestamptz,
  last_success timestamptz,
  last_error text not null default ''
);

-- The last scan of each file. `project` and `generation` belong to its last application, which
-- stays in force while the file is invalid.
create table bundle_files (
  provider text not null references bundle_providers on delete cascade,
  path text not null,
  organization text not null default '',
  project_slug text not null default '',
  project uuid,
  -- SHA-256 of the content at the last scan.
  digest bytea not null,
  generation integer not null default 0,
  status text not null check (status in ('pending', 'applied', 'rejected', 'error', 'degraded')),
  last_error text not null default '',
  scanned_at timestamptz not null,
  applied_at timestamptz,
  primary key (provider, path)
);
