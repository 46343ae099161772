-- An agent receives only tests for which it has all capabilities. A test that a process of the previous
-- version inserts needs none.
alter table check_tests add column needs text[] not null default '{}';

-- Capabilities of the process. One of an earlier version writes none, and has those of its types.
alter table presences add column knows text[] not null default '{}';
