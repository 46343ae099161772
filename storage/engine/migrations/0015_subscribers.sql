-- Who is told of what a status page tells, by mail or webhook, once they have said that they want it.

create table subscribers (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  page integer not null,
  kind text not null check (kind in ('mail', 'webhook')),
  address text not null,
  -- One subscription of a page, however the address is spelt.
  address_key text not null,
  -- Null is the whole page, else components by their ids.
  components uuid[],
  -- What was asked for last, by whoever named the address: it counts once it is confirmed.
  requested_components uuid[],
  requested_at timestamptz not null,
  confirmed_at timestamptz,
  -- In a row, how often the address was refused for good; after too many nothing is sent any more.
  bounces integer not null default 0,
  suspended_at timestamptz,
  -- It confirms and ends the subscription, and is in every mail.
  token_hash bytea not null unique,
  token_ciphertext bytea not null,
  created_at timestamptz not null,
  primary key (org, id),
  unique (org, page, kind, address_key),
  foreign key (org, page) references status_pages (org, id) on delete cascade
);
create index subscribers_uid on subscribers (uid);
create index subscribers_page on subscribers (org, page, id);
create index subscribers_unconfirmed on subscribers (requested_at) where confirmed_at is null;

-- When an address, as its SHA-256, was last written to because somebody named it.
create table subscription_requests (
  address_hash bytea primary key,
  requested_at timestamptz not null
);
create index subscription_requests_at on subscription_requests (requested_at);

-- A page is told once, and then tells each of its subscribers.
alter table destinations add column page integer, add column subscriber integer,
  add foreign key (org, page) references status_pages (org, id) on delete cascade,
  add foreign key (org, subscriber) references subscribers (org, id) on delete cascade,
  add unique (org, page), add unique (org, subscriber),
  drop constraint destinations_check,
  add check (num_nonnulls(webhook, channel, page, subscriber) = 1);

-- What confirms a subscription belongs to no project where the page does not. `enqueued_through` is the
-- last of the page's subscribers for whom a row of this event was written.
alter table outbox alter column project drop not null,
  add column enqueued_through integer not null default 0,
  drop constraint outbox_topic_check,
  add constraint outbox_topic_check
    check (topic in ('incident_event', 'monitor_transition', 'subscription'));

-- Host names at which pages are read without the console around them.
create table status_page_domains (
  domain text primary key check (domain = lower(domain)),
  org integer not null,
  page integer not null,
  foreign key (org, page) references status_pages (org, id) on delete cascade,
  unique (org, page)
);
