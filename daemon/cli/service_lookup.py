"""Resolution of the options --project and --service to ids.

Ids are used as they are, slugs are looked up over the API. An unknown slug is an error, and so is a
slug of several projects. If the token cannot read the lists, the slugs are part of the request, and
the server looks them up.
"""

import os
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import click

from ...storage.core.slug import is_slug
from .api_client import (
    ApiClient,
    LookupForbidden,
    NoResponse,
    read_json,
    read_server,
    refusal,
    within,
)
from .options import fail

# An API token belongs to one organization. A user's JWT can see several.
ORGANIZATIONS_MOST: Final = 50


class ResourceNotFound(NoResponse):
    """The server knows no object with this slug, or several."""


class ResourceParam(click.ParamType[str]):
    """Option value that is an id or a slug."""

    name = "id or slug"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if id_of(text) is None and not is_slug(text):
            self.fail("must be an id or a slug", param, ctx)
        return text


project_option = click.option(
    "--project", type=ResourceParam(), required=True, help="The project, by its id or its slug."
)
service_option = click.option(
    "--service", type=ResourceParam(), required=True, help="The service, by its id or its slug."
)


@dataclass(frozen=True, slots=True)
class ServiceRef:
    """Ids of a service and its project; slugs if the token cannot look up the ids."""

    project: UUID | str
    service: UUID | str

    @property
    def path(self) -> str:
        return f"/projects/{self.project}/services/{self.service}"

    def is_service(self, found: UUID) -> bool:
        """Returns whether an answer can be about the service. Only an id can be compared."""
        return isinstance(self.service, str) or self.service == found


def id_of(text: str) -> UUID | None:
    """Returns the id if the text is a canonical UUID, else None. An id wins over an equal slug."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None


async def find_place(client: ApiClient, project: str, service: str) -> ServiceRef:
    """Returns the ids of project and service. Looks up each one that is given as a slug.

    Returns them as they are given if the token cannot read the lists.

    Raises: ResourceNotFound, NoResponse.
    """
    try:
        project_id = await find_project(client, project)
        service_id = id_of(service) or await _service(client, project_id, service)
    except LookupForbidden:
        return ServiceRef(id_of(project) or project, id_of(service) or service)
    return ServiceRef(project_id, service_id)


async def find_project(client: ApiClient, project: str, organization: str | None = None) -> UUID:
    """Returns the id of a project. Searches one organization, or all that the token sees.

    Raises: ResourceNotFound, NoResponse.
    """
    return id_of(project) or await _project(client, project, organization)


async def _project(client: ApiClient, slug: str, organization_named: str | None) -> UUID:
    organizations = await client.listed("/organizations")
    if organization_named is not None:
        organizations = [
            one for one in organizations if organization_named in (one.get("slug"), one.get("id"))
        ]
    if len(organizations) > ORGANIZATIONS_MOST:
        raise ResourceNotFound("the token sees too many organizations: give the id of the project")
    found: list[UUID] = []
    for organization in organizations:
        projects = await client.listed(f"/organizations/{_id(organization)}/projects")
        found += [_id(project) for project in projects if project.get("slug") == slug]
    if len(found) > 1:
        raise ResourceNotFound(f"several projects have the slug {slug}: give the id of one")
    return _only(found, f"project {slug} not found or not visible to this token")


async def _service(client: ApiClient, project: UUID, slug: str) -> UUID:
    summaries = await client.listed(f"/projects/{project}/services")
    services = [summary.get("service") for summary in summaries]
    found = [_id(s) for s in services if isinstance(s, dict) and s.get("slug") == slug]
    return _only(found, f"service {slug} not found in the project")


def _only(found: list[UUID], otherwise: str) -> UUID:
    if len(found) != 1:
        raise ResourceNotFound(otherwise)
    return found[0]


def _id(listed: dict[str, Any]) -> UUID:
    found = id_of(str(listed.get("id")))
    if found is None:
        raise NoResponse("the response to a slug lookup is not from a Leadline server")
    return found


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
