-- A setting's one secret, such as the password of the mail server, bound to the setting's uid.
alter table settings
  add column uid uuid not null default gen_random_uuid() unique,
  add column secret_ciphertext bytea;

-- Who asked for a new password, by the address that was given, known or not: what is done for an
-- address that nobody has takes as long as for another. `due_at` is when it is looked at next.
create table reset_requests (
  address text primary key,
  attempts integer not null default 0,
  due_at timestamptz not null
);
create index reset_requests_due on reset_requests (due_at);

-- What a letter may be answered with, once; a newer one ends the older. Only its SHA-256 is kept.
create table password_resets (
  user_id integer primary key references users on delete cascade,
  token_hash bytea not null unique,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
