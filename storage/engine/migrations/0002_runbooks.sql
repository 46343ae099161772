alter table monitors add column runbook_url text not null default '';
