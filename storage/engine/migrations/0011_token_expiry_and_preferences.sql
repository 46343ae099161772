-- Expiry of API tokens that a user chooses, and preferences of users for times.

-- The end that a user chose, null for a token without an end. `expires_at` is the end in force: a
-- rotation can bring it forward.
alter table api_tokens add column chosen_expiry timestamptz;
-- A rotation made a successor. Processes of earlier versions do not write it: for their rotations,
-- `expires_at` differs from `chosen_expiry`.
alter table api_tokens add column is_rotated boolean not null default false;

-- Time zone and clock (12 or 24 hours) of the console for this user.
alter table users add column time_zone text not null default 'UTC';
alter table users add column hour_clock smallint not null default 24
  check (hour_clock in (12, 24));
