-- Who somebody is elsewhere: an issuer and its subject, and never an e-mail address (OpenID Connect
-- Core 1.0, section 5.7).
create table user_identities (
  id integer generated always as identity primary key,
  user_id integer not null references users on delete cascade,
  issuer text not null,
  subject text not null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  unique (issuer, subject)
);
create index user_identities_user on user_identities (user_id);

-- Nobody knows an address of who came by a token alone, and one whom an issuer does not vouch for is
-- matched with nobody: only a verified address is one that a person is found by.
alter table users
  alter column email set default '',
  add column email_verified boolean not null default true;
drop index users_email;
create unique index users_email on users (lower(email)) where email_verified and email <> '';

-- A sign-in that was begun at the provider: good once, for the browser that began it.
create table oidc_flows (
  state_hash bytea primary key,
  browser_hash bytea not null,
  nonce text not null,
  verifier text not null,
  redirect text not null,
  issuer text not null,
  -- The session's person who ties this identity to their account.
  link_user integer references users on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index oidc_flows_expiry on oidc_flows (expires_at);
