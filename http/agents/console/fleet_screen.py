"""Fleet screen: processes and agents, waiting jobs per region, and agent tokens.

The screen belongs to the installation, not to a project. A new token is shown only in the answer to
its form, so that it cannot be requested again.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from ....storage.agents.queries.agent_tokens import select_agent_tokens
from ....storage.agents.queries.agents import select_agents
from ....storage.agents.queries.fleet import count_watched, select_fleet
from ....storage.agents.transactions.edit_agent_tokens import LIVE_MOST, REVOKE
from ....storage.core.refusal import Refused
from ....storage.results.queries.results import select_packing_progress
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, uuid_given, value_of
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ..routes import agent_tokens as api
from ..schemas.agent_tokens import CreatedAgentToken
from .fleet_text import (
    agent_lines,
    first_of,
    packing_line,
    process_lines,
    region_lines,
    token_lines,
)

PATH: Final = "/admin/fleet"
AGENTS_MOST: Final = 500
_SAID: Final = {
    "not_found": "The token was deleted or revoked.",
    "agent_token_quota": f"Limit: {LIVE_MOST} active tokens. Revoke one first.",
}


async def render_fleet(ask: Request) -> Response:
    return await _render(ask)


async def submit_fleet(ask: Request) -> Response:
    """Handles a form button by the handlers of the API, so that only their rules apply."""
    made = None
    try:
        match value_of(ask, "act"):
            case "make":
                made = await api.make(ask, stripped(ask, "name"), value_of(ask, "region"))
            case "revoke":
                await api.revoke(replace(ask, ids={"tokenID": uuid_given(value_of(ask, "token"))}))
            case _:
                raise Problem("Unknown action")
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        said = _SAID.get(refused.code) or f"{refused.field.capitalize()}: {refused.message}."
        return await _render(ask, error=said, field=refused.field)
    return redirect(PATH) if made is None else await _render(ask, made=made)


async def _render(
    ask: Request, *, error: str = "", field: str = "", made: CreatedAgentToken | None = None
) -> Response:
    options = ask.context.options
    async with ask.context.pool.transaction("console_fleet", read_only=True) as tx:
        fleet = await select_fleet(tx, options.regions)
        watched = await count_watched(tx)
        agents = await select_agents(tx, AGENTS_MOST)
        tokens = await select_agent_tokens(tx)
        packed = await select_packing_progress(tx)
    return page(
        "agents/console/fleet_screen.html",
        frame=await outer_frame_of(ask),
        status=400 if error else 200,
        path=PATH,
        first=first_of(fleet, watched),
        regions=region_lines(fleet, watched),
        packing=packing_line(packed),
        processes=process_lines(fleet, options.version),
        agents=agent_lines(agents, fleet.at, options.version),
        tokens=token_lines(tokens, fleet.at),
        choices=sorted(options.regions),
        version=options.version,
        has_agents=options.has_agents,
        made=made,
        error=error,
        field=field,
        typed=stripped(ask, "name") if error else "",
        chosen=value_of(ask, "region") if error else "",
    )


_route: Final = partial(form_route, action=REVOKE)

ROUTES: Final = (
    _route("GET", PATH, None, render_fleet, "Workers, agents and agent tokens."),
    _route("POST", PATH, None, submit_fleet, "Create or revoke an agent token."),
)
