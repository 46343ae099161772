"""OpenAPI 3.1 document of a route table, generated from the types that decode and encode.

Requires neither a database nor a configuration. Agent routes are excluded by `in_document`.
"""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import msgspec

from ...storage.accounts.rules.access import Need, Permission
from ..wire.route import NoQuery, Route
from ..wire.schema import Error

Json = dict[str, Any]

_REF: Final = "#/components/schemas/{name}"
_COOKIE: Final[Json] = {"session": []}
_BEARER: Final[Json] = {"bearer": []}
# Permissions that require a signed-in user.
_PERSONAL: Final = frozenset({Need.SESSION, Need.GLOBAL_ADMIN})
_WITH_RETRY: Final = frozenset({429, 503})
_WHO: Final = {
    Need.NOBODY: "Requires no credential.",
    Need.ANYONE: "For any credential.",
    Need.VIEWER: "For viewers and up.",
    Need.EDITOR: "For editors and up.",
    Need.PROJECT_ADMIN: "For project admins and up.",
    Need.ORG_ADMIN: "For org admins.",
    Need.GLOBAL_ADMIN: "For global admins, signed in.",
    Need.SESSION: "For the session of a signed-in user.",
    Need.AGENT: "For agents.",
}


_BY_TOKEN: Final = " The token in the query is accepted without a credential."


def describe(routes: Iterable[Route], base_path: str = "") -> Json:
    """Returns the document. Each route with `in_document` occurs exactly once."""
    told = [route for route in routes if route.in_document]
    schemas, components = _schemas(told)
    paths: dict[str, Json] = {}
    for route in told:
        item = paths.setdefault(route.path, _path_item(route))
        item[route.method.lower()] = _operation(route, schemas, components)
    # Query structs become parameters; no schema refers to them.
    for query in {route.query for route in told}:
        components.pop(_component_name(schemas[query]), None)
    return {
        "openapi": "3.1.0",
        "info": _info(),
        "servers": [{"url": base_path or "/"}],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {_response_name(status): _refusal(status) for status in _refusals(told)},
            "securitySchemes": _SECURITY_SCHEMES,
        },
    }


_SECURITY_SCHEMES: Final[Json] = {
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "leadline_session",
        "description": "Set by signing in. The name of the cookie can be configured.",
    },
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API token, or a JWT of the configured OpenID Connect issuer.",
    },
}


def _info() -> Json:
    return {
        "title": "Leadline",
        "version": version("leadline"),
        "description": "Every refusal is a JSON object with exactly one field, `error`.",
        "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    }


def _schemas(routes: Iterable[Route]) -> tuple[dict[Any, Json], dict[str, Json]]:
    """Returns the schemas of all bodies, answers and queries, and their components."""
    types: list[Any] = [Error]
    for route in routes:
        named = (route.body, route.answer, route.query, *route.answers_too.values())
        types += [t for t in named if t is not None]
    unique = list(dict.fromkeys(types))
    made, components = msgspec.json.schema_components(unique, ref_template=_REF)
    # msgspec gives types with equal names dotted names, which client generators cannot read.
    homonyms = sorted(name for name in components if "." in name)
    assert not homonyms, f"types of the API have names of their own: {homonyms}"
    return dict(zip(unique, made, strict=True)), components


def _path_item(route: Route) -> Json:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", **({"format": "uuid"} if name.endswith("ID") else {})},
        }
        for name in route.parameters
    ]
    return {"parameters": parameters} if parameters else {}


def _operation(route: Route, schemas: Mapping[Any, Json], components: Mapping[str, Json]) -> Json:
    operation: Json = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "description": _who(route.action) + (_BY_TOKEN if route.token_opens else ""),
        "tags": [route.tag],
        "security": [*_security(route.action.need), *([{}] if route.token_opens else [])],
    }
    if route.query is not NoQuery:
        operation["parameters"] = _query_parameters(
            components[_component_name(schemas[route.query])]
        )
    if route.body is not None:
        content = {"application/json": {"schema": schemas[route.body]}}
        operation["requestBody"] = {"required": not route.body_optional, "content": content}
    operation["responses"] = {
        str(status): _answer(route, status, answer, schemas)
        for status, answer in ((route.status, route.answer), *route.answers_too.items())
    } | {
        str(status): {"$ref": f"#/components/responses/{_response_name(status)}"}
        for status in refusals_of(route)
    }
    return operation


def operation_id(route: Route) -> str:
    """Returns a name for the operation that is stable while its method and path are."""
    words = re.findall(r"\w+", route.path.removeprefix("/api/v1"))
    return "_".join([route.method.lower(), *words])


def _who(action: Permission) -> str:
    said = _WHO[action.need]
    if action.grant is not None:
        said += f" Open to tokens narrowed to `{action.grant}`."
    if action.tokenless:
        said += " Not for tokens."
    return said


def _security(need: Need) -> list[Json]:
    if need is Need.NOBODY:
        return []
    return [_COOKIE] if need in _PERSONAL else [_COOKIE, _BEARER]


def _component_name(reference: Json) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _query_parameters(schema: Json) -> list[Json]:
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": kind}
        for name, kind in schema["properties"].items()
    ]


def _answer(route: Route, status: int, body: Any, schemas: Mapping[Any, Json]) -> Json:
    answer: Json = {"description": HTTPStatus(status).phrase}
    if body is not None:
        answer["content"] = {route.content_type: {"schema": schemas[body]}}
        answer["content"] |= {kind: {} for kind in route.content_types_too}
    if status == 302:
        answer["headers"] = {"Location": {"schema": {"type": "string"}}}
    return answer


def refusals_of(route: Route) -> list[int]:
    """Returns the statuses with which a route can refuse."""
    statuses = set(route.also)
    if route.body is not None:
        statuses |= {400, 413, 415}
    if route.query is not NoQuery:
        statuses.add(400)
    if route.action.need is not Need.NOBODY:
        statuses |= {401, 403}
    if route.parameters:
        statuses.add(404)
    return sorted(statuses - {route.status})


def _refusals(routes: Iterable[Route]) -> list[int]:
    return sorted({status for route in routes for status in refusals_of(route)})


def _response_name(status: int) -> str:
    """Returns a name by number, since phrases differ between versions of Python."""
    return f"Refused{status}"


def _refusal(status: int) -> Json:
    response: Json = {
        "description": HTTPStatus(status).phrase,
        "content": {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}},
    }
    if status in _WITH_RETRY:
        seconds = {"description": "Whole seconds.", "schema": {"type": "integer", "minimum": 1}}
        response["headers"] = {"Retry-After": seconds}
    return response
