-- E-mail at a hand-off to a person, with what is open and what happened.
alter table oncall_schedules
  add column hand_off_email boolean not null default false,
  -- When the next hand-off is looked for; null until the first pass.
  add column hand_off_at timestamptz,
  -- Channel that was on call at the last pass, null for nobody. It can have been deleted since.
  add column handed_to integer,
  add column handed_at timestamptz;
create index oncall_schedules_hand_off on oncall_schedules (hand_off_at) where hand_off_email;

-- A person asks others to take over a span of duty, possibly in return for a span of theirs.
create table oncall_cover_requests (
  org integer not null,
  id integer generated always as identity,
  uid uuid not null,
  schedule integer not null,
  -- Whose duty it is.
  channel integer not null,
  -- Who is asked; null for everybody.
  wanted integer,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  -- Span of the other person that `channel` takes in return.
  return_starts_at timestamptz,
  return_ends_at timestamptz,
  note text not null,
  author_label text not null,
  created_at timestamptz not null,
  -- Null while the request is open.
  accepted_by integer,
  accepted_at timestamptz,
  primary key (org, id),
  foreign key (org, schedule) references oncall_schedules (org, id) on delete cascade,
  foreign key (org, channel) references notification_channels (org, id) on delete cascade,
  foreign key (org, wanted) references notification_channels (org, id) on delete cascade,
  foreign key (org, accepted_by) references notification_channels (org, id)
    on delete set null (accepted_by),
  check (ends_at > starts_at),
  check ((return_starts_at is null) = (return_ends_at is null)),
  check (return_ends_at > return_starts_at)
);
create index oncall_cover_requests_uid on oncall_cover_requests (uid);
create index oncall_cover_requests_schedule on oncall_cover_requests (org, schedule, ends_at);
create index oncall_cover_requests_channel on oncall_cover_requests (org, channel);
create index oncall_cover_requests_wanted on oncall_cover_requests (org, wanted);
create index oncall_cover_requests_accepted on oncall_cover_requests (org, accepted_by);

-- E-mails of on-call to people. A row is deleted when its e-mail was sent or given up.
create table oncall_mails (
  id integer generated always as identity primary key,
  uid uuid not null,
  user_id integer not null references users on delete cascade,
  org integer not null references organizations on delete cascade,
  project uuid not null,
  subject text not null,
  paragraphs text[] not null,
  created_at timestamptz not null,
  due_at timestamptz not null,
  attempts integer not null default 0
);
create index oncall_mails_due on oncall_mails (due_at);
create index oncall_mails_user on oncall_mails (user_id);
create index oncall_mails_org on oncall_mails (org);
