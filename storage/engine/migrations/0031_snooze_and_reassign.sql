-- The escalation stops until then, and continues unless the incident is resolved or acknowledged.
alter table incidents add column snoozed_until timestamptz;
alter table incidents add column snoozed_label text not null default '';
-- Person or escalation policy that the incident was reassigned to last; empty for none.
alter table incidents add column assigned_kind text not null default ''
  check (assigned_kind in ('', 'person', 'policy'));
alter table incidents add column assigned_label text not null default '';
