"""Keys of the scope that the pipeline resolved for a route."""

from .route import Request


def org_of(ask: Request) -> int:
    assert ask.scope is not None, "the route has a scope"
    org = ask.scope.organization
    assert isinstance(org, int), "scopes are found as the database's keys"
    return org


def project_of(ask: Request) -> int:
    assert ask.scope is not None, "the route has a scope"
    project = ask.scope.project
    assert isinstance(project, int), "scopes are found as the database's keys"
    return project
