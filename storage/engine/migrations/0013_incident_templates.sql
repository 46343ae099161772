-- Texts that the form of a new incident can begin with. An incident gets a copy, without a reference.
create table incident_templates (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  project integer not null,
  name text not null,
  title text not null,
  impact text not null,
  body text not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create index incident_templates_uid on incident_templates (uid);
create unique index incident_templates_name on incident_templates (org, project, lower(name));
