-- Destinations of tickets: incidents of impact none or minor, and burn rules of severity ticket.
-- While a project has an enabled one, its tickets page no person.
alter table notification_channels add column takes_tickets boolean not null default false;
create index notification_channels_tickets on notification_channels (org, project)
  where takes_tickets;

-- Incident whose page covers this one, in a storm of external alerts of one service.
alter table incidents add column merged_into integer;
alter table incidents add foreign key (org, merged_into) references incidents (org, id)
  on delete set null (merged_into);
create index incidents_merged on incidents (org, merged_into) where merged_into is not null;
create index incidents_of_storm on incidents (org, service)
  where external_key is not null and service is not null and status <> 'resolved';
