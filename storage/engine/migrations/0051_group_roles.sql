-- Rules that give members of a group of the identity provider a role at each sign-in. `issuer` is
-- that of the provider, `claim` the name of the claim with the groups, `value` the group.
create table group_roles (
  id integer generated always as identity primary key,
  uid uuid not null,
  issuer text not null,
  claim text not null,
  value text not null,
  org integer not null references organizations on delete cascade,
  -- Null for the whole organization.
  project integer,
  role role not null,
  created_at timestamptz not null,
  foreign key (org, project) references projects (org, id) on delete cascade,
  check (role <> 'org_admin' or project is null)
);
create unique index group_roles_uid on group_roles (uid);
create unique index group_roles_one
  on group_roles (issuer, claim, value, org, coalesce(project, 0));
create index group_roles_place on group_roles (org, project);

-- Issuer whose groups gave the membership; null if a person gave it. A process of the previous
-- version inserts memberships of people only.
alter table memberships add column group_issuer text;
