-- People of a bundle: an address, and contact methods that the bundle proposes. `pending` are the
-- methods that no account has received yet. Proposals are never deliveries: a method is unverified.
create table bundle_people (
  org integer not null,
  id integer generated always as identity,
  project integer not null,
  uid uuid not null unique,
  email text not null,
  name text not null,
  role role not null,
  -- Lists of objects with kind, address and label.
  methods jsonb not null,
  pending jsonb not null,
  managed_by text not null default '',
  bundle_uid text,
  bundle_path text not null default '',
  orphaned_at timestamptz,
  primary key (org, id),
  foreign key (org, project) references projects (org, id) on delete cascade
);
create unique index bundle_people_bundle
  on bundle_people (org, project, managed_by, bundle_uid) where bundle_uid is not null;
create index bundle_people_managed on bundle_people (managed_by);
create index bundle_people_pending on bundle_people (lower(email)) where pending <> '[]';

-- The project whose bundle proposed the method; empty for a method that the person added.
alter table contact_methods add column proposed_by text not null default '';
-- Name that the page of the invitation suggests.
alter table invitations add column display_name text not null default '';

-- What bundles proposed to an account, so that a method that the person deleted is not proposed
-- again. `digest` is that of kind and address.
create table proposed_methods (
  user_id integer not null references users on delete cascade,
  digest bytea not null,
  proposed_at timestamptz not null,
  primary key (user_id, digest)
);

-- Gives a member the proposed methods of all projects, as unverified ones. A method that the
-- account has, or was proposed before, is left out. Proposals end at 10 methods, so that 10 remain
-- for the person. An address that an OpenID provider only claims receives nothing.
-- It waits for no row: an application can hold people for minutes, and what is locked stays due.
-- Returns false if the account is locked.
create function adopt_proposed_methods(person integer, moment timestamptz)
returns boolean language plpgsql as $$
begin
  perform from users where id = person and email_verified for no key update skip locked;
  if not found then
    return false;
  end if;
  with held as (
    select b.org, b.id, b.pending, o.name || ' / ' || p.name as whose
    from bundle_people b
      join projects p on p.org = b.org and p.id = b.project
      join organizations o on o.id = b.org
      join users u on u.id = person and lower(u.email) = lower(b.email)
    where b.pending <> '[]' and exists (select from memberships m
      where m.user_id = person and m.org = b.org and (m.project is null or m.project = b.project))
    for update of b skip locked
  ), due as (
    update bundle_people b set pending = '[]' from held h where b.org = h.org and b.id = h.id
    returning h.org, h.id, h.pending, h.whose
  ), offered as (
    select distinct on (m.one ->> 'kind', m.one ->> 'address')
      d.org, d.id, m.place, d.whose, m.one ->> 'kind' as kind, m.one ->> 'address' as address,
      m.one ->> 'label' as label,
      sha256(convert_to((m.one ->> 'kind') || ' ' || (m.one ->> 'address'), 'UTF8')) as digest
    from due d cross join jsonb_array_elements(d.pending) with ordinality as m(one, place)
    order by m.one ->> 'kind', m.one ->> 'address', d.org, d.id, m.place
  ), compared as (
    select o.*, exists (select from contact_methods c where c.user_id = person
      and c.kind = o.kind and c.config ->> 'to' = o.address) as is_own
    from offered o
    where not exists (
      select from proposed_methods n where n.user_id = person and n.digest = o.digest)
  ), fresh as (
    select c.* from compared c where not c.is_own order by c.org, c.id, c.place
    limit greatest(0, 10 - (select count(*) from contact_methods c where c.user_id = person))
  ), noted as (
    insert into proposed_methods (user_id, digest, proposed_at)
    select person, c.digest, moment from compared c
    where c.is_own or c.digest in (select f.digest from fresh f)
  )
  insert into contact_methods
    (uid, user_id, kind, label, config, enabled, created_at, proposed_by)
  select gen_random_uuid(), person, f.kind, f.label, jsonb_build_object('to', f.address), true,
    moment, f.whose
  from fresh f order by f.org, f.id, f.place;
  return true;
end $$;
