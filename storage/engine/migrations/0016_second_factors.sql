-- The shared secret of a generator of one-time passwords (RFC 6238), pending until `totp_enabled_at`.
-- `totp_step` is the last time step a code of which was taken: none at or before it is taken again.
-- `totp_wrong_at` are when wrong codes came lately.
alter table users
  add column totp_ciphertext bytea,
  add column totp_enabled_at timestamptz,
  add column totp_step bigint not null default 0,
  add column totp_wrong_at timestamptz[] not null default '{}',
  add constraint users_totp_check check (totp_enabled_at is null or totp_ciphertext is not null);

-- Each is worth one sign-in where the generator is lost; kept as its SHA-256.
create table recovery_codes (
  user_id integer not null references users on delete cascade,
  code_hash bytea not null,
  primary key (user_id, code_hash)
);
