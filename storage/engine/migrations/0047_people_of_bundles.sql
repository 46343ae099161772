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

-- Gives a member the proposed methods of all projects, as unverified ones. A method that the
-- account has is left as it is. Proposals end at 10 methods, so that 10 remain for the person.
-- An address that an OpenID provider only claims receives nothing.
create function adopt_proposed_methods(person integer, moment timestamptz)
returns void language plpgsql as $$
begin
  if not exists (
    select from users u join bundle_people b on lower(b.email) = lower(u.email)
    where u.id = person and u.email_verified and b.pending <> '[]') then
    return;
  end if;
  perform from users where id = person for no key update;
  with due as (
    update bundle_people b set pending = '[]'
    from bundle_people before
      join projects p on p.org = before.org and p.id = before.project
      join organizations o on o.id = before.org
      join users u on u.id = person and u.email_verified
        and lower(u.email) = lower(before.email)
    where b.org = before.org and b.id = before.id and before.pending <> '[]'
      and exists (select from memberships m where m.user_id = person and m.org = before.org
        and (m.project is null or m.project = before.project))
    returning b.org, b.id, before.pending as methods, o.name || ' / ' || p.name as whose
  ), proposed as (
    select distinct on (m.one ->> 'kind', m.one ->> 'address')
      d.org, d.id, m.place, d.whose, m.one ->> 'kind' as kind, m.one ->> 'address' as address,
      m.one ->> 'label' as label
    from due d cross join jsonb_array_elements(d.methods) with ordinality as m(one, place)
    order by m.one ->> 'kind', m.one ->> 'address', d.org, d.id, m.place
  )
  insert into contact_methods
    (uid, user_id, kind, label, config, enabled, created_at, proposed_by)
  select gen_random_uuid(), person, p.kind, p.label, jsonb_build_object('to', p.address), true,
    moment, p.whose
  from proposed p
  where not exists (select from contact_methods c
    where c.user_id = person and c.kind = p.kind and c.config ->> 'to' = p.address)
  order by p.org, p.id, p.place
  limit greatest(0, 10 - (select count(*) from contact_methods c where c.user_id = person));
end $$;

-- A membership begins in many ways: an invitation, single sign-on, an administrator.
create function memberships_adopt() returns trigger language plpgsql as $$
begin
  perform adopt_proposed_methods(new.user_id, new.created_at);
  return null;
end $$;
create trigger memberships_adopt after insert on memberships
  for each row execute function memberships_adopt();
