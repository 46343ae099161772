-- Who there is: organizations, projects, people, what they may do, and what they did.
-- Inside, keys are small integers led by the organization; what leaves the system is a UUIDv7.

-- An instant crosses the border as whole microseconds since the epoch. Stable and not immutable,
-- as timestamptz + interval is stable and only then does the planner inline it.
create function at(microseconds bigint) returns timestamptz
language sql stable strict parallel safe
return timestamptz 'epoch' + microseconds * interval '1 microsecond';

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
  display_name text not null default '',
  is_global_admin boolean not null default false,
  -- PHC string of argon2id; null where the account signs in elsewhere only.
  password text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_active_at timestamptz
);
create unique index users_email on users (lower(email));

create table sessions (
  token_hash bytea primary key,
  uid uuid not null unique,
  user_id integer not null references users on delete cascade,
  client text not null default '',
  created_at timestamptz not null,
  last_seen_at timestamptz not null,
  expires_at timestamptz not null
);
create index sessions_user on sessions (user_id);
create index sessions_expiry on sessions (expires_at);

create type role as enum ('viewer', 'editor', 'project_admin', 'org_admin');

create table memberships (
  org integer not null references organizations,
  id integer generated always as identity,
  uid uuid not null,
  user_id integer not null references users on delete cascade,
  -- null: the whole organization.
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
  -- null: the role decides; a list only narrows it.
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

-- org 0 is the instance itself. The target holds identifiers and transition ends, never bodies.
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

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;

-- A revoked privilege does not bind the owner, and the daemon is the owner: a trigger does.
create trigger audit_entries_append_only before update or delete on audit_entries
  for each row execute function refuse_change();

create table instance_settings (
  key text primary key,
  value jsonb not null,
  updated_at timestamptz not null
);
