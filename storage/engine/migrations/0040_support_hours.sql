-- Support hours of a service: outside of them its incidents of low urgency wait. Without windows it has
-- none. A window is text, as in the restrictions of an on-call schedule.
alter table services
  add column support_zone text not null default '',
  add column support_hours text[] not null default '{}';
