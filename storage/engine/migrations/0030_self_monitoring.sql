-- Escalation policy of the incidents about Leadline itself in the project; null for its only one.
alter table projects add column default_policy integer;
alter table projects add foreign key (org, default_policy)
  references escalation_policies (org, id) on delete set null (default_policy);
create index projects_default_policy on projects (org, default_policy)
  where default_policy is not null;

-- Condition of Leadline that the incident is about, empty for an incident about anything else.
alter table incidents add column self_condition text not null default '';

-- Conditions of Leadline that hold or ended a moment ago. `subject` is a region or a host.
create table self_conditions (
  org integer not null,
  project integer not null,
  kind text not null,
  subject text not null,
  -- Start of the present streak of observations: one of the two.
  holds_since timestamptz,
  clear_since timestamptz,
  observed_at timestamptz not null,
  -- True once the incident of this occurrence was opened.
  reported boolean not null,
  incident integer,
  primary key (org, project, kind, subject),
  foreign key (org, project) references projects (org, id) on delete cascade,
  foreign key (org, incident) references incidents (org, id) on delete set null (incident),
  check (num_nonnulls(holds_since, clear_since) = 1)
);
create index self_conditions_incident on self_conditions (org, incident)
  where incident is not null;

-- One row: the lock of the passes, and the last heartbeat to the external URL.
create table self_monitor (
  only_row boolean primary key default true check (only_row),
  beat_at timestamptz not null
);
insert into self_monitor (beat_at) values ('epoch');
