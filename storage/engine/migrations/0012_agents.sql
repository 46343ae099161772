-- Agents fetch their work over HTTP; a test before saving runs where its monitor would.

create table agent_tokens (
  id integer generated always as identity primary key,
  uid uuid not null unique,
  name text not null,
  region text not null,
  token_hash bytea not null unique,
  created_by integer references users on delete set null,
  created_at timestamptz not null,
  -- A row that is revoked stays, so that the list can say so.
  revoked_at timestamptz
);

-- Each agent as it was last heard. `credential` names the token's source: token:<uid> of the table
-- above, agent:<name> or catch-all of the configuration. `instance` tells agents with one token
-- apart, where they do.
create table agents (
  credential text not null,
  region text not null,
  instance uuid not null,
  name text not null,
  version text not null default '',
  workflow_kinds text[] not null default '{}',
  carrier integer not null default 1,
  -- Its name as the holder of what it has leased.
  holder uuid not null unique,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  primary key (credential, region, instance)
) with (fillfactor = 60);

-- A worker may serve several regions; `region` stays for processes of the version before.
alter table presences add column regions text[] not null default '{}';

-- Of which definition it was given out: a result of an older one says nothing about this one.
alter table jobs add column revision integer not null default 0;

-- A check that is tried before it is saved, by a worker of its region; gone once it is answered.
create table check_tests (
  uid uuid primary key,
  region text not null,
  -- The check; encrypted where it holds secrets.
  document jsonb,
  document_ciphertext bytea,
  created_at timestamptz not null,
  claim_until timestamptz not null,
  holder uuid,
  -- What the run found.
  answer jsonb,
  check ((document is null) <> (document_ciphertext is null))
);
create index check_tests_waiting on check_tests (region, created_at) where holder is null;
