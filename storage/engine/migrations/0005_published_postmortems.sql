-- A postmortem is public only if a user publishes it. `published_at` is the instant of the
-- publication, and of the first write before that. Earlier versions published each postmortem.
alter table postmortems add column published boolean not null default false;
update postmortems set published = true;
