-- The composite of the regional monitor that a monitor is a part of; its own id for the composite
-- itself. A process of the previous version inserts null.
alter table monitors add column regional_of integer;
create index monitors_regional on monitors (org, regional_of) where regional_of is not null;
