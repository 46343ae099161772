"""Recipients of a page: people become their contact methods, by the personal rules.

Each message to a person is a row of the outbox, written with its instant in the transaction of the
page. A restart therefore neither loses nor repeats one.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from ...core.instant import Instant
from ...engine.pools import Tx
from ..rules.personal_rules import (
    PersonalRules,
    Urgency,
    after_quiet,
    planned_notifications,
    urgency_of,
)
from ..tables import person_channels
from ..tables.contact_methods import select_rules


async def planned_methods(
    tx: Tx,
    org: int,
    project: int,
    people: Sequence[person_channels.PersonChannel],
    severity: str,
) -> tuple[dict[int, Instant], dict[int, list[int]]]:
    """Returns the instant of each method's channel, and the method channels of each person.

    People are keyed by their channel. A person without a usable method has none.
    """
    users = [person.user for person in people]
    usable = await person_channels.select_usable_methods(tx, users)
    rules = await select_rules(tx, users)
    quiet = await person_channels.select_quiet_hours(tx, users)
    urgency = urgency_of(severity)
    at_of: dict[int, Instant] = {}
    for user in users:
        whole = PersonalRules(usable[user], rules[user], quiet.get(user))
        for planned in planned_notifications(whole, urgency, tx.now):
            at_of[planned.method] = planned.at
    if not at_of:
        return {}, {}
    found = await person_channels.ensure_method_channels(tx, org, project, at_of)
    person_of = {person.user: person.channel for person in people}
    mine: dict[int, list[int]] = defaultdict(list)
    for one in found:
        mine[person_of[one.user]].append(one.channel)
    return {one.channel: at_of[one.method] for one in found}, dict(mine)


async def after_quiet_hours(
    tx: Tx, org: int, channels: Collection[int], severity: str
) -> Mapping[int, Instant]:
    """Returns the instants of a later message of a thread that must wait for quiet hours."""
    if urgency_of(severity) is Urgency.PAGE:
        return {}
    people = await person_channels.select_people_of_methods(tx, org, list(channels))
    if not people:
        return {}
    quiet = await person_channels.select_quiet_hours(tx, sorted(set(people.values())))
    found = {
        channel: after_quiet(quiet[user], tx.now)
        for channel, user in people.items()
        if user in quiet
    }
    return {channel: at for channel, at in found.items() if at > tx.now}
