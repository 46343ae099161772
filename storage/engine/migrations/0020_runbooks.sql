-- The page that describes what to do. Empty means none. A burn rule without one has that of its owner.
alter table monitors add column runbook_url text not null default '';
alter table services add column runbook_url text not null default '';
alter table burn_rules add column runbook_url text not null default '';
