"""Uses of people by on-call, which prevent the removal of an account or a membership."""

from ...engine.pools import Tx

# Policies, schedules and coming overrides name the channel of the person in the project.
_IS_NAMED = """
select exists (
  select from notification_channels c
  where c.person = %(user)s and c.contact_method is null
    and (%(org)s::int is null or c.org = %(org)s)
    and (exists (select from escalation_targets t where t.org = c.org and t.channel = c.id)
      or exists (select from oncall_participants t where t.org = c.org and t.channel = c.id)
      or exists (select from oncall_overrides v
        where v.org = c.org and v.channel = c.id and v.ends_at > at(%(now)s)))
    and not exists (select from memberships m
      where m.user_id = c.person and m.org = c.org and m.id <> %(membership)s
        and (m.project is null or m.project = c.project) and %(org)s::int is not null)
)
"""


async def is_person_on_call(tx: Tx, user: int, org: int | None = None, membership: int = 0) -> bool:
    """Returns whether on-call names the person where no other membership remains.

    Without `org`, of all organizations and independent of memberships.
    """
    found: bool = await tx.value(_IS_NAMED, user=user, org=org, membership=membership, now=tx.now)
    return found
