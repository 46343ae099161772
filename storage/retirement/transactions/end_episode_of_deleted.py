"""End of the alert episode of a deleted service. Its members page again themselves."""

from ...alerting.tables import service_episodes as episodes
from ...alerting.tables.service_alerting import lock_alertings
from ...alerting.transactions.notify_episode import DELETED_BODY, end_episode, resolve
from ...engine.pools import Tx
from ...incidents.tables import incidents
from ...objectives.tables import burn_rules
from ...objectives.transactions.notify_burn import notify_unwatched, of_service
from ...services.rows import ServiceRow


async def end_with_service(tx: Tx, row: ServiceRow) -> None:
    """Ends the episode and the automatic incident, and notifies the notified channels.

    Locks: the caller has locked the service, and deletes it afterwards.
    """
    key = row.key
    await lock_alertings(tx, [key])
    burning = await burn_rules.lock_notified_rules(tx, row.org, service=row.id)
    episode = (await episodes.select_open_episodes(tx, [key])).get(key)
    named = {}
    if episode is not None and episode.incident is not None:
        named[key] = episode.incident
    unnamed = [] if named else [key]
    incident = (await incidents.lock_of_episodes(tx, named, unnamed)).get(key)
    if episode is not None:
        await end_episode(tx, episode, incident, DELETED_BODY)
    else:
        await resolve(tx, incident, DELETED_BODY)
    await notify_unwatched(tx, of_service(row), burning)
