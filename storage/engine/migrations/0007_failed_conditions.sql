-- The failed condition of a check and its measured value. A passing check stores nothing.

-- Each condition that a monitor has had. Heartbeats refer to it by its id, so that an edit does not
-- change what earlier results say. `replaced_at`: since then the monitor does not have it.
create table monitor_conditions (
  org integer not null,
  monitor integer not null,
  id integer generated always as identity,
  text text not null,
  replaced_at timestamptz,
  primary key (org, monitor, id),
  unique (org, monitor, text),
  foreign key (org, monitor) references monitors (org, id) on delete cascade
);
-- A condition longer than 512 characters was never accepted.
insert into monitor_conditions (org, monitor, text)
select m.org, m.id, c.text
from monitors m cross join unnest(m.conditions) with ordinality as c(text, n)
where length(c.text) <= 512
order by m.org, m.id, c.n
on conflict do nothing;

-- `failed_condition` is an id of `monitor_conditions`.
alter table heartbeats add column failed_condition integer, add column measured text;
-- The condition and the value of the result that began the outage.
alter table outages add column failed_condition text;
-- Whether a measured value can be content of the response.
alter table monitors add column show_values boolean not null default false;
