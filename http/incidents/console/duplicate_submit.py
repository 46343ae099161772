"""Suppression of duplicate submits by a double click.

An equal submit of the same user within a few seconds has no effect.
"""

from uuid import UUID

from ....storage.core.instant import SECOND, Instant
from ....storage.incidents.queries.console_incidents import select_opened_same, was_just_posted
from ....storage.incidents.rules.incident import is_public, normal_lines
from ...wire.route import Request
from ...wire.schema import given
from ...wire.scope_keys import org_of, project_of
from ..schemas import AddIncidentUpdate, CreateIncident

# Longest time between two clicks, µs. It is too short to type an equal text.
CLICKS_APART_US = 10 * SECOND


async def opened_already(ask: Request, body: CreateIncident) -> UUID | None:
    """Returns the incident that the first click opened."""
    async with ask.context.pool.transaction(
        "console_find_duplicate_incident", read_only=True
    ) as tx:
        return await select_opened_same(
            tx,
            org_of(ask),
            project_of(ask),
            Instant(tx.now - CLICKS_APART_US),
            author=ask.who.user,
            monitor=given(body.monitor_id),
            title=body.title,
            impact=body.impact.value,
            status=body.status.value,
            body=normal_lines(body.body),
        )


async def was_submitted_already(ask: Request, body: AddIncidentUpdate) -> bool:
    """Returns whether the newest update is equal and from the first click."""
    status = given(body.status)
    async with ask.context.pool.transaction("console_find_duplicate_update", read_only=True) as tx:
        return await was_just_posted(
            tx,
            ask.ids["incidentID"],
            Instant(tx.now - CLICKS_APART_US),
            author=ask.who.user,
            status=None if status is None else status.value,
            body=normal_lines(body.body),
            public=is_public(status, given(body.public)),
        )
