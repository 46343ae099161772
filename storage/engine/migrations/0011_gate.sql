-- The release gate: its policies with all they ever said, what it decided, who let through what it
-- blocked; and the changes of services beside it.

-- Every revision of a policy, of a service or, where there is none, of the project. What governs has
-- not ended; one that a later revision replaced, or that was deleted, has.
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

-- Who let through what a policy blocks, until when, and how it ended before.
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

-- What the gate answered, with all that it was answered from. Nothing is ever changed in it, not
-- even when its service or its project goes: hence values, and no references.
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

create function refuse_to_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are only ever added', tg_table_name using errcode = 'P0001';
end $$;
create trigger gate_decisions_only_added before update or delete on gate_decisions
  for each row execute function refuse_to_change();
create trigger gate_decisions_not_emptied before truncate on gate_decisions
  for each statement execute function refuse_to_change();

-- A change of a service: all that is known by one identity.
create table changes (
  org integer not null,
  id bigint generated always as identity,
  service integer not null,
  source text not null,
  external_id text not null,
  kind text not null check (kind in ('deploy', 'rollback', 'flag')),
  -- Of the phase that began it, else of the one that ended it; and of the latest.
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
-- It starts once, and ends once.
create unique index change_phases_once on change_phases (org, change, (phase = 'started'));
create unique index change_phases_uid on change_phases (uid);
create trigger change_phases_only_added before update on change_phases
  for each row execute function refuse_to_change();
-- They go with their change, which goes with its service, and not alone.
create trigger change_phases_stay before delete on change_phases
  for each row when (pg_trigger_depth() = 0) execute function refuse_to_change();
create trigger change_phases_not_emptied before truncate on change_phases
  for each statement execute function refuse_to_change();

-- Who depended on whom, and when: an incident is looked at by the graph it was opened under.
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
-- Since when they stand is not known: as long as both have.
insert into service_dependency_terms (org, service, upstream, from_at)
select d.org, d.service, d.upstream, greatest(s.created_at, u.created_at)
from service_dependencies d
  join services s on s.org = d.org and s.id = d.service
  join services u on u.org = d.org and u.id = d.upstream;

-- Which incidents of a service followed a change of it, or of what it depended on.
create index incidents_service_started on incidents (org, service, started_at)
  where service is not null;
