"""The one table of routes: the app, the OpenAPI document and the access matrix are made of it."""

from functools import cache
from typing import Any, Final

import msgspec

from ..storage.rules.access import Action, Need
from . import stream
from .console.pages import ROUTES as PAGES
from .describe import describe
from .route import Ask, Reply, Route
from .routes import (
    audit,
    channels,
    me,
    members,
    monitors,
    organizations,
    people,
    projects,
    push,
    results,
    search,
    secrets,
    signin,
    tokens,
    version,
    webhooks,
)


@cache
def _document() -> bytes:
    return msgspec.json.encode(describe(ROUTES))


async def _read_document(_ask: Ask) -> Reply:
    """Stands here and in no room of routes, as it tells of all of them."""
    return Reply(body=_document())


ROUTES: Final[tuple[Route, ...]] = (
    *signin.ROUTES,
    *me.ROUTES,
    *version.ROUTES,
    *organizations.ROUTES,
    *members.ROUTES,
    *projects.ROUTES,
    *tokens.ROUTES,
    *monitors.ROUTES,
    *secrets.ROUTES,
    *channels.ROUTES,
    *webhooks.ROUTES,
    *results.ROUTES,
    *push.ROUTES,
    *search.ROUTES,
    *stream.ROUTES,
    *audit.ROUTES,
    *people.ROUTES,
    Route(
        method="GET",
        path="/api/v1/openapi.json",
        action=Action(Need.ANYONE),
        handler=_read_document,
        summary="This document.",
        answer=dict[str, Any],
    ),
    *PAGES,
)
