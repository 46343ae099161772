"""Organizations, projects, monitors, services and incidents by slug, number or id.

An unknown slug is an error that lists near ones, and an ambiguous one is an error that lists all.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import quote

import click

from ..service_lookup import ORGANIZATIONS_MOST, ResourceNotFound, ResourceParam, id_of
from .session import Api

NEAR_MOST: Final = 3
# All slugs are listed if there are only a few.
FEW: Final = 8
INCIDENT_DIGITS_MOST: Final = 9


class ProjectParam(ResourceParam):
    """Id or slug of a project, or the slugs of its organization and itself: `acme/shop`."""

    name = "project"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        organization, slash, project = str(value).partition("/")
        if not slash:
            return super().convert(value, param, ctx)
        for slug in (organization, project):
            super().convert(slug, param, ctx)
        return str(value)


project_option = click.option(
    "--project",
    type=ProjectParam(),
    envvar="LEADLINE_PROJECT",
    help="Project: slug, organization/project, or id.  [default: $LEADLINE_PROJECT, else that of"
    " the profile, else the only project]",
)
organization_option = click.option(
    "--organization",
    type=ResourceParam(),
    help="Organization: slug or id.  [default: the only organization]",
)


@dataclass(frozen=True, slots=True)
class ProjectRef:
    """Project with its path below /api/v1, and its name in messages."""

    uid: str
    named: str

    @property
    def path(self) -> str:
        return f"/projects/{self.uid}"


def near_names(wanted: str, names: list[str]) -> str:
    """Returns the end of a message: the nearest names, or all if there are only a few."""
    near = get_close_matches(wanted, names, NEAR_MOST, 0.6)
    if near:
        return f"; did you mean {' or '.join(near)}?"
    if 0 < len(names) <= FEW:
        return f"; known: {', '.join(sorted(names))}"
    return ""


async def find_organization(api: Api, named: str | None) -> dict[str, Any]:
    """Returns the organization. Raises: ResourceNotFound, NoResponse, UsageError if it must be
    named."""
    known = await _organizations(api)
    if named is None:
        if len(known) == 1:
            return known[0]
        slugs = ", ".join(sorted(one["slug"] for one in known)) or "none"
        raise click.UsageError(f"give --organization; known: {slugs}")
    for one in known:
        if named in (one["slug"], one["id"]):
            return one
    hint = near_names(named, [one["slug"] for one in known])
    raise ResourceNotFound(f"organization {named} not found{hint}")


async def _organizations(api: Api) -> list[dict[str, Any]]:
    known = await api.get("/organizations", "list organizations")
    if len(known) > ORGANIZATIONS_MOST:
        raise ResourceNotFound("the token sees too many organizations: give ids instead of slugs")
    return list(known)


async def find_project(api: Api, named: str | None) -> ProjectRef:
    """Returns the project that is given, else that of the profile, else the only one.

    Raises: ResourceNotFound, NoResponse, UsageError if it must be named.
    """
    wanted = named or api.account.project
    if wanted and id_of(wanted):
        return ProjectRef(wanted.lower(), wanted)
    found = []
    for organization in await _organizations(api):
        path = f"/organizations/{organization['id']}/projects"
        for one in await api.get(path, "list projects"):
            found.append((f"{organization['slug']}/{one['slug']}", one))
    if not wanted:
        return _only_project(found)
    full = "/" in wanted
    chosen = [(name, one) for name, one in found if wanted == (name if full else one["slug"])]
    if len(chosen) > 1:
        choices = " or ".join(name for name, _ in chosen)
        raise ResourceNotFound(f"several projects have the slug {wanted}: give {choices}")
    if not chosen:
        hint = near_names(wanted, [name if full else one["slug"] for name, one in found])
        raise ResourceNotFound(f"project {wanted} not found{hint}")
    return ProjectRef(chosen[0][1]["id"], chosen[0][0])


def _only_project(found: list[tuple[str, dict[str, Any]]]) -> ProjectRef:
    if len(found) == 1:
        return ProjectRef(found[0][1]["id"], found[0][0])
    if not found:
        raise ResourceNotFound("this account sees no project")
    slugs = ", ".join(sorted(name for name, _ in found[:FEW]))
    more = ", …" if len(found) > FEW else ""
    raise click.UsageError(f"give --project; known: {slugs}{more}")


async def find_monitor(api: Api, project: str | None, named: str) -> dict[str, Any]:
    """Returns the monitor with this slug in the project, or with this id."""
    if id_of(named):
        return dict(await api.get(f"/monitors/{named}", f"find monitor {named}"))
    home = await find_project(api, project)
    path = f"{home.path}/monitors"
    for one in await api.pages(f"{path}?q={quote(named)}", f"find monitor {named}"):
        if one["slug"] == named:
            return one
    known = await api.pages(path, f"find monitor {named}")
    hint = near_names(named, [one["slug"] for one in known])
    raise ResourceNotFound(f"monitor {named} not found in {home.named}{hint}")


async def find_service(api: Api, project: str | None, named: str) -> tuple[ProjectRef, str]:
    """Returns the project and the id of the service with this slug or id."""
    home = await find_project(api, project)
    if id_of(named):
        return home, named
    known = [one["service"] for one in await api.get(f"{home.path}/services", "list services")]
    for one in known:
        if one["slug"] == named:
            return home, one["id"]
    hint = near_names(named, [one["slug"] for one in known])
    raise ResourceNotFound(f"service {named} not found in {home.named}{hint}")


class IncidentParam(click.ParamType[str]):
    """Number of an incident in its project, such as 12 or #12, or its id."""

    name = "number or id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).removeprefix("#")
        is_number = text.isascii() and text.isdigit() and len(text) <= INCIDENT_DIGITS_MOST
        if not is_number and id_of(text) is None:
            self.fail("must be the number or the id of an incident", param, ctx)
        return text


async def find_incident(api: Api, project: str | None, named: str) -> dict[str, Any]:
    """Returns the incident with this number in the project, or with this id."""
    if id_of(named):
        return dict(await api.get(f"/incidents/{named}", f"find incident {named}"))
    home = await find_project(api, project)
    number, cursor = int(named), ""
    while True:
        page = await api.page(f"{home.path}/incidents", 500, cursor, f"find incident {named}")
        for one in page.rows:
            if one["number"] == number:
                return one
        cursor = page.cursor
        # The numbers have no gaps, and the newest is first.
        if not cursor or page.rows[-1]["number"] < number:
            raise ResourceNotFound(f"incident {named} not found in {home.named}")


async def monitor_slugs(api: Api, project: ProjectRef) -> dict[str, str]:
    """Returns the slugs of the project's monitors by id."""
    known = await api.pages(f"{project.path}/monitors", "list monitors")
    return {one["id"]: one["slug"] for one in known}
