-- Proof of the domains of status pages.

-- The token that proved the domain. Null for a domain that was set before, which keeps its page.
alter table status_page_domains add column token text;
alter table status_page_domains add column proved_at timestamptz;

-- Domains whose proof is missing: at most one of a page. Several pages can claim the same domain.
create table status_page_domain_claims (
  org integer not null,
  page integer not null,
  domain text not null check (domain = lower(domain)),
  token text not null unique,
  claimed_at timestamptz not null,
  -- The last check, and why it did not find the proof.
  checked_at timestamptz,
  reason text,
  primary key (org, page),
  foreign key (org, page) references status_pages (org, id) on delete cascade,
  check ((checked_at is null) = (reason is null))
);
