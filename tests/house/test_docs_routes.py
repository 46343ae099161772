"""The documents name only routes of the API and fields of requests that exist."""

import json
import re
from importlib import import_module
from typing import Any

import jsonschema
import pytest

from leadline.http.server.openapi_document import document
from leadline.storage.bundles.rules.bundle_schema import bundle_schema
from tests.house.pages import PAGES, Block, blocks, name_of

yaml: Any = import_module("yaml")
_METHOD = "GET|POST|PUT|PATCH|DELETE"
_ROUTE = re.compile(
    rf"(?P<methods>\b(?:{_METHOD})`?(?:(?:,| and| or|, or) `?(?:{_METHOD})`?)* )?"
    r"(?<![\w.])(?P<path>(?:/api/v1|/auth|…|\$A)/[^\s`\"|)'?,;]+)"
)
OPENAPI: dict[str, Any] = document()
ROUTES = {tuple(path.strip("/").split("/")): methods for path, methods in OPENAPI["paths"].items()}


def test_the_document_of_the_api_has_routes() -> None:
    assert len(ROUTES) > 100


def matches(named: tuple[str, ...], route: tuple[str, ...]) -> bool:
    """True if each named part equals the part of the route or replaces its parameter.

    A name that begins with an ellipsis is compared with the end of the route, and one that ends
    with an asterisk with its beginning."""
    if named[0] == "…":
        named, route = named[1:], route[-len(named) + 1 :]
    elif named[-1] == "*":
        named, route = named[:-1], route[: len(named) - 1]
    if len(named) != len(route):
        return False
    return all(is_parameter(b) or a == b for a, b in zip(named, route, strict=True))


def is_parameter(part: str) -> bool:
    return part.startswith("{")


def routes_of(path: str) -> list[dict[str, Any]]:
    named = tuple(path.rstrip(".:*" if not path.endswith("/*") else "").strip("/").split("/"))
    return [methods for route, methods in ROUTES.items() if matches(named, route)]


def named_routes() -> list[tuple[str, str, tuple[str, ...]]]:
    """Returns page, path and methods of each route that a document names."""
    found = set()
    for page in PAGES:
        for match in _ROUTE.finditer(page.read_text()):
            methods = tuple(re.findall(_METHOD, match["methods"] or ""))
            path = match["path"].replace("$A/", "/api/v1/")
            # Routes of the daemon only: `…/upcoming` of another format does not count.
            if path.startswith("…") and not methods:
                continue
            found.add((name_of(page), path, methods))
    return sorted(found)


@pytest.mark.parametrize(("page", "path", "methods"), named_routes())
def test_a_route_that_a_document_names_exists(
    page: str, path: str, methods: tuple[str, ...]
) -> None:
    routes = routes_of(path)
    assert routes, f"{page}: {path}"
    for method in methods:
        assert any(method.lower() in route for route in routes), f"{page}: {method} {path}"


def requests() -> list[tuple[Block, str, str, str]]:
    """Returns the examples of requests: a line with method and path, and a body below it."""
    found = []
    for block in blocks():
        request = re.match(rf"({_METHOD}) (/\S+)\n(\{{.*)", block.text, re.DOTALL)
        if request:
            found.append((block, request[1], request[2], request[3]))
    return found


def fields_of(schema: dict[str, Any]) -> set[str]:
    """Returns the names of the fields of a schema of the document."""
    while "$ref" in schema:
        schema = OPENAPI["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    found = set(schema.get("properties", {}))
    for part in [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("allOf", [])]:
        found |= fields_of(part)
    return found


@pytest.mark.parametrize(("block", "method", "path", "body"), requests())
def test_the_fields_of_an_example_exist(block: Block, method: str, path: str, body: str) -> None:
    (route,) = [one for one in routes_of(path) if method.lower() in one]
    schema = route[method.lower()]["requestBody"]["content"]["application/json"]["schema"]
    # YAML reads the placeholders of the examples, which are not quoted, as texts.
    given = yaml.safe_load(body)
    assert set(given) <= fields_of(schema), f"{block.page}: {path}"


def test_there_are_examples_of_requests() -> None:
    assert len(requests()) >= 8


@pytest.mark.parametrize("block", [one for one in blocks() if one.language == "json"])
def test_an_example_of_json_is_valid(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", [one for one in blocks() if one.language == "yaml"])
def test_an_example_of_yaml_is_valid(block: Block) -> None:
    assert list(yaml.safe_load_all(block.text))


def test_the_example_of_a_bundle_is_valid() -> None:
    (text,) = [one.text for one in blocks() if one.language == "yaml" and "\nformat: 2" in one.text]
    jsonschema.Draft202012Validator(bundle_schema()).validate(yaml.safe_load(text))
