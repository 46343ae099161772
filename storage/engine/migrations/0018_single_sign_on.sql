-- An address is one account's only where it is known to be that person's: made by who runs the
-- installation, or told to be verified by the provider. What a provider merely claims is kept to be
-- shown, and finds nobody.
alter table users add column email_verified boolean not null default true;
drop index users_email;
create unique index users_email on users (lower(email)) where email_verified and email <> '';

-- Who an account is elsewhere (OpenID Connect Core 1.0, section 2: iss and sub together).
create table user_identities (
  issuer text not null,
  subject text not null,
  user_id integer not null references users on delete cascade,
  created_at timestamptz not null,
  primary key (issuer, subject)
);
create index user_identities_user on user_identities (user_id);

-- Sign-ins that are under way at a provider: each is taken once, by the browser that began it.
create table sign_on_flows (
  state_hash bytea primary key,
  browser_hash bytea not null,
  issuer text not null,
  nonce text not null,
  verifier text not null,
  redirect text not null,
  -- Whose session asked that the identity becomes theirs, null for a sign-in.
  link_user integer references users on delete cascade,
  expires_at timestamptz not null
);
create index sign_on_flows_expiry on sign_on_flows (expires_at);

-- By whose word a session began: whoever signs out may want to sign out there too.
alter table sessions add column issuer text;
