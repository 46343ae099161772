-- A deletion of an incident or service looks for the outages and episodes that refer to it.
create index outages_incident on outages (org, incident) where incident is not null;
create index outages_service on outages (org, service) where service is not null;
create index service_episodes_incident on service_episodes (org, incident)
  where incident is not null;
