-- Rotation of API tokens, and invitations of members by e-mail.

-- The instant from which a rotated token is refused. Null for a token without an end.
alter table api_tokens add column expires_at timestamptz;
-- The first characters of the secret, which identify the token in a list. Empty for tokens of
-- earlier versions.
alter table api_tokens add column start text not null default '';

-- Open invitations. Acceptance and withdrawal delete the row.
create table invitations (
  org integer not null references organizations on delete cascade,
  id integer generated always as identity,
  uid uuid not null unique,
  -- Null for the whole organization.
  project integer,
  email text not null,
  role role not null,
  -- SHA-256 of the newest link. Null until a link was made.
  token_hash bytea,
  invited_by integer references users on delete set null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- When the e-mail is due. Null if none is waiting.
  mail_due_at timestamptz,
  attempts integer not null default 0,
  -- When the last e-mail was handed to the mail server.
  mailed_at timestamptz,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade,
  check (role <> 'org_admin' or project is null)
);
create unique index invitations_one on invitations (org, lower(email), coalesce(project, 0));
create unique index invitations_token on invitations (token_hash);
create index invitations_due on invitations (mail_due_at) where mail_due_at is not null;
