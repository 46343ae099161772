-- The composite of the regional monitor that a monitor is a part of; its own id for the composite
-- itself. A process of the previous version inserts null. If it deletes the composite, the members
-- become ordinary monitors.
alter table monitors add column regional_of integer;
alter table monitors add foreign key (org, regional_of) references monitors (org, id)
  on delete set null (regional_of);
create index monitors_regional on monitors (org, regional_of) where regional_of is not null;
