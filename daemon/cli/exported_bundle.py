"""Bundle of a project, as its server exports it."""

import os
from typing import Any

from .api_client import NoResponse, read_json, read_server, refusal, within
from .options import fail
from .service_lookup import find_project


def exported_bundle(
    organization: str | None, project: str, timeout_seconds: float
) -> dict[str, Any]:
    """Returns the bundle. Ends the command with its message if the server does not answer."""
    client = read_server(os.environ).client()

    async def ask() -> dict[str, Any]:
        where = await find_project(client, project, organization)
        answer = await client.ask("GET", f"/projects/{where}/bundle")
        found = read_json(answer.body, dict[str, Any])
        if answer.status != 200 or found is None:
            raise NoResponse(refusal(answer))
        return found

    try:
        return within(timeout_seconds, ask)
    except NoResponse as error:
        raise fail(str(error)) from error
