"""The OpenAPI document is valid, contains every route, and matches the responses."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from leadline.http.server.openapi_builder import describe, operation_id, refusals_of
from leadline.http.server.openapi_document import document, document_bytes
from leadline.http.server.route_table import ROUTES
from leadline.http.wire.route import Route
from leadline.storage.accounts.rules.access import Need, Permission
from leadline.storage.status_pages.rules.status_page import Visibility
from tests.support.app.cast import Api

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

# The import of jsonschema takes 3 s of CPU in a test process: one process runs the tests with it.
pytestmark = pytest.mark.xdist_group("jsonschema")

DOCUMENT: Any = json.loads(document_bytes())
# The accepted document. `leadline openapi > tests/server/openapi.json` accepts a change.
ACCEPTED = Path(__file__).with_name("openapi.json")


def operations() -> dict[tuple[str, str], Any]:
    methods = {"get", "post", "put", "patch", "delete"}
    return {
        (method.upper(), path): operation
        for path, item in DOCUMENT["paths"].items()
        for method, operation in item.items()
        if method in methods
    }


def test_the_document_is_valid_openapi_3_1() -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    assert DOCUMENT["openapi"].startswith("3.1")
    assert list(OpenAPIV31SpecValidator(DOCUMENT).iter_errors()) == []
    assert document() == DOCUMENT


def test_the_document_is_the_accepted_one() -> None:
    """Clients are generated from it: no name in it may follow a module or a class that is moved."""
    assert document_bytes().decode().splitlines() == ACCEPTED.read_text().splitlines()


def test_every_operation_has_a_tag() -> None:
    assert [r.path for r in ROUTES if bool(r.tag) is not r.in_document] == []


def test_the_document_has_exactly_the_routes() -> None:
    told = {(r.method, r.path) for r in ROUTES if r.in_document}
    assert set(operations()) == told
    ids = [operation["operationId"] for operation in operations().values()]
    assert len(set(ids)) == len(ids)


def test_internal_routes_are_omitted() -> None:
    async def handler(_: Any) -> None: ...

    shown = Route(
        method="GET", path="/a", action=Permission(Need.AGENT), handler=handler, summary=""
    )
    agent = Route(
        method="GET",
        path="/b",
        action=Permission(Need.AGENT),
        handler=handler,
        summary="",
        in_document=False,
    )
    assert set(describe([shown, agent])["paths"]) == {"/a"}


def test_every_path_parameter_has_its_format() -> None:
    for path, item in DOCUMENT["paths"].items():
        told = {p["name"]: p["schema"].get("format") for p in item.get("parameters", [])}
        named = re.findall(r"\{(\w+)\}", path)
        assert told == {n: "uuid" if n.endswith("ID") else None for n in named}


def test_the_query_parameters_match_the_routes() -> None:
    told = operations()
    for route in ROUTES:
        if not route.in_document:
            continue
        parameters = told[route.method, route.path].get("parameters", [])
        assert all(parameter["in"] == "query" for parameter in parameters)
        fields = {
            field.encode_name: field.required for field in msgspec.structs.fields(route.query)
        }
        assert {each["name"]: each["required"] for each in parameters} == fields, route.path


def test_every_body_refuses_unknown_fields() -> None:
    for (method, path), operation in operations().items():
        # Other projects can extend this one body.
        if "requestBody" not in operation or path.endswith("/alerts/alertmanager"):
            continue
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert resolved(schema)["additionalProperties"] is False, (method, path)


def test_every_component_is_referred_to() -> None:
    text = document_bytes().decode()
    for family, members in DOCUMENT["components"].items():
        for name in members:
            if family == "securitySchemes":
                continue
            assert f'"#/components/{family}/{name}"' in text, (family, name)


@pytest.mark.parametrize(
    ("component", "fields"),
    [
        ("AuthedIncident", {"impacts_unavailable", "members_unavailable"}),
        ("MaintenanceWindow", {"archived_at", "cancel_effective_at"}),
        ("ServiceMaterialization", {"retracted_at", "retracted_to"}),
        ("ServiceWindowReport", {"retracted_at", "retracted_to"}),
    ],
)
def test_the_optional_fields_of_older_clients_are_in_the_document(
    component: str, fields: set[str]
) -> None:
    schema = DOCUMENT["components"]["schemas"][component]
    assert fields <= schema["properties"].keys()
    assert not fields & set(schema["required"])


def test_every_error_response_uses_the_error_schema() -> None:
    error = DOCUMENT["components"]["schemas"]["Error"]
    assert error["required"] == ["error"]
    assert list(error["properties"]) == ["error"]
    for response in DOCUMENT["components"]["responses"].values():
        schema = response["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/Error"}
    limited = DOCUMENT["components"]["responses"]["Refused429"]
    assert "Retry-After" in limited["headers"]


def test_a_route_lists_its_error_statuses() -> None:
    by_id = {operation_id(route): refusals_of(route) for route in ROUTES if route.in_document}
    assert by_id["post_auth_local_login"] == [400, 401, 403, 404, 413, 415, 429]
    assert by_id["get_me"] == [401, 403]
    assert by_id["delete_projects_projectID"] == [400, 401, 403, 404, 409]
    assert by_id["post_organizations_orgID_projects"] == [400, 401, 403, 404, 409, 413, 415]
    assert by_id["post_organizations_orgID_status_pages"] == [400, 401, 403, 404, 409, 413, 415]


def test_a_route_with_two_success_statuses_lists_both() -> None:
    path = "/api/v1/projects/{projectID}/services/{serviceID}/changes"
    responses = operations()["POST", path]["responses"]
    assert responses["200"]["content"] == responses["201"]["content"]
    assert set(responses) == {"200", "201", "400", "401", "403", "404", "409", "413", "415", "429"}


def test_the_security_requirements_of_routes() -> None:
    told = operations()
    assert told["POST", "/auth/local/login"]["security"] == []
    assert told["GET", "/api/v1/me"]["security"] == [{"session": []}, {"bearer": []}]
    assert told["GET", "/api/v1/admin/users"]["security"] == [{"session": []}]


def resolved(schema: Any) -> Any:
    if "$ref" not in schema:
        return schema
    return DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]


def validator(schema: Any) -> "Draft202012Validator":
    from jsonschema import Draft202012Validator, FormatChecker

    whole = {**schema, "components": DOCUMENT["components"]}
    return Draft202012Validator(whole, format_checker=FormatChecker())


async def test_responses_match_the_openapi_document(api: Api) -> None:
    monitor = await api.new_monitor()
    await api.new_session("global_admin")
    ids = {"orgID": api.org, "projectID": api.project, "monitorID": monitor.uid}
    await api.new_override()
    await api.new_maintenance()
    await api.aim_for_project()
    await api.new_series()
    ids["scheduleID"] = await api.new_schedule()
    await api.new_policy(schedule=ids["scheduleID"])
    ids["serviceID"] = await api.new_service(aims=True)
    ids["pageID"] = await api.new_status_page(visibility=Visibility.UNLISTED)
    await api.new_component(ids["pageID"], monitor=monitor.uid)
    ids["incidentID"] = await api.new_incident(explained=True)
    await api.new_gate_policy()
    ids["overrideID"] = await api.new_gate_override(ids["serviceID"])
    ids["decisionID"] = await api.new_decision(ids["serviceID"])
    await api.new_change(ids["serviceID"])
    ids["operationID"] = await api.new_operation()
    ids["muteID"] = await api.new_mute(matchers="", monitor=monitor.uid)
    key = f"/api/v1/projects/{api.project}/push-key"
    await api.ask("global_admin", "POST", key, {"creates_monitors": False})
    looked_at = 0
    for (method, path), operation in operations().items():
        is_open = path.startswith(("/api/v1/public/", "/ping/"))
        if method != "GET" or is_open or path.endswith("/events"):
            continue
        if "200" not in operation["responses"]:
            # It redirects the browser to another host.
            continue
        filled = path
        for name, uid in ids.items():
            filled = filled.replace(f"{{{name}}}", str(uid))
        query = {"q": "shop"} if path.endswith("/search") else None
        if path.endswith(("/latency", "/shifts", "/response-times")):
            query = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
        if path.endswith("/compare"):
            query = {"source": "ci", "external_id": "1"}
        if path.endswith(("/decisions", "/services/{serviceID}/changes")):
            query = {"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}
        if path.endswith("/series"):
            query = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "step": "day"}
        response = await api.ask("global_admin", "GET", filled, query=query)
        assert response.status_code == 200, path
        content, *_ = operation["responses"]["200"]["content"].values()
        data = await response.get_data(as_text=True)
        body = data if path.endswith((".ics", ".svg", "/feed")) else json.loads(data)
        assert not list(validator(content["schema"]).iter_errors(body)), path
        looked_at += 1
    assert looked_at >= 17


async def test_the_served_document_equals_the_printed_one(api: Api) -> None:
    response = await api.ask("viewer", "GET", "/api/v1/openapi.json")
    assert response.content_type == "application/json"
    assert json.loads(await response.get_data()) == DOCUMENT


@pytest.mark.parametrize("bad", [{"role": "king"}, {"org_id": 1}])
def test_the_schemas_refuse_wrong_responses(bad: Any) -> None:
    good = {"org_id": "0198f0c1-0000-7000-8000-000000000000", "role": "viewer"}
    schema = {"$ref": "#/components/schemas/Membership"}
    assert not list(validator(schema).iter_errors(good))
    assert list(validator(schema).iter_errors({**good, **bad}))


# A number is absent if it is withheld. The first is a request of another project, the second means
# that no revision exists.
MAY_BE_NULL = {"AlertmanagerPayload.truncatedAlerts", "GatePolicyWrite.expected_revision"}


def test_no_number_is_null() -> None:
    found = set()
    schemas = DOCUMENT["components"]["schemas"]
    for name, schema in schemas.items():
        for field, kind in schema.get("properties", {}).items():
            kinds = {one.get("type") for one in (kind, *kind.get("anyOf", ()))}
            if "null" in kinds and kinds & {"number", "integer"}:
                found.add(f"{name}.{field}")
    assert found == MAY_BE_NULL
