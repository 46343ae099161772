-- Number of an incident in its project, from 1 without gaps.
alter table incidents add column number integer;

-- The last number of each project. The row lock orders transactions that open incidents.
create table incident_numbers (
  org integer not null,
  project integer not null,
  last integer not null,
  primary key (org, project),
  foreign key (org, project) references projects (org, id) on delete cascade
);

update incidents i set number = n.number
from (
  select org, id, row_number() over (partition by org, project order by created_at, id) as number
  from incidents) n
where i.org = n.org and i.id = n.id;
insert into incident_numbers (org, project, last)
select org, project, max(number) from incidents group by org, project;
create unique index incidents_number on incidents (org, project, number);

-- Numbers the incidents of every version. It runs after the insert, so that an insert that a unique
-- index refuses takes no number.
create function number_incident() returns trigger language plpgsql as $$
declare
  following integer;
begin
  insert into incident_numbers as n (org, project, last) values (new.org, new.project, 1)
  on conflict (org, project) do update set last = n.last + 1
  returning n.last into following;
  update incidents set number = following where org = new.org and id = new.id;
  return null;
end $$;
create trigger incidents_numbered after insert on incidents
  for each row when (new.number is null) execute function number_incident();

-- Components that an incident names. A component is named by its uid, without a foreign key, so that
-- an incident whose component is deleted does not become one of the whole project.
create table incident_components (
  org integer not null,
  incident integer not null,
  component uuid not null,
  primary key (org, incident, component),
  foreign key (org, incident) references incidents (org, id) on delete cascade
);
create index incident_components_component on incident_components (org, component);
