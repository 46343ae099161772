"""Templates of incidents: bounds, unique names, audit, and no way to those of another tenant."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from leadline.storage.incidents.rules.incident import BODY_LONGEST, TITLE_LONGEST, IncidentImpact
from leadline.storage.incidents.transactions import edit_incident_templates
from tests.support.app.cast import Api
from tests.support.app.serving import call


def path_of(api: Api, project: str = "acme/shop") -> str:
    return f"/projects/{api.projects[project][1]}/incident-templates"


async def make(api: Api, status: int = 201, **given: Any) -> Any:
    body = {"name": "Payments", "title": "Payments fail", **given}
    return await call(api, "POST", path_of(api), body, status)


async def listed(api: Api, project: str = "acme/shop") -> Any:
    return await call(api, "GET", path_of(api, project), who="viewer")


async def audited(api: Api) -> list[tuple[str, str]]:
    return await api.rows("select action, target from audit_entries order by id")


async def test_a_template_is_made_listed_changed_and_deleted(api: Api) -> None:
    assert await listed(api) == []
    made = await make(api, impact="major", body="We are\r\ninvestigating.")
    assert made == {
        "id": made["id"],
        "project_id": str(api.project),
        "name": "Payments",
        "title": "Payments fail",
        "impact": "major",
        "body": "We are\ninvestigating.",
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
    }
    plain = await make(api, name="accounts", title="Sign-in fails")
    assert (plain["impact"], plain["body"]) == ("minor", "")
    assert await listed(api) == [plain, made], "by name, in any case"
    one = f"/incident-templates/{made['id']}"
    changed = await call(api, "PATCH", one, {"body": "", "impact": "none"})
    assert changed == {**made, "body": "", "impact": "none"}
    assert await call(api, "PATCH", one, {"name": "PAYMENTS"}) == {**changed, "name": "PAYMENTS"}
    await call(api, "DELETE", one, status=204)
    await call(api, "DELETE", one, status=404)
    await call(api, "PATCH", one, {"name": "x"}, 404)
    assert await listed(api) == [plain]


async def test_each_write_is_audited_without_its_texts(api: Api) -> None:
    made = await make(api, body="canary-9d1e")
    one = f"/incident-templates/{made['id']}"
    await call(api, "PATCH", one, {"title": "canary-77aa", "body": "canary-77aa"})
    await call(api, "PATCH", one, {"title": "canary-77aa", "impact": "minor"})
    await call(api, "PATCH", one, {})
    await call(api, "DELETE", one, status=204)
    target = f"incident_template:{made['id']} project:{api.project}"
    assert await audited(api) == [
        ("incident_template.create", target),
        ("incident_template.update", f"{target} title body changed"),
        ("incident_template.delete", target),
    ]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"name": ""}, "name: "),
        ({"name": " \t"}, "name: must not be blank"),
        ({"name": "x" * 201}, "name: "),
        ({"name": "a\nb"}, "name: must not contain control characters"),
        ({"title": " "}, "title: must not be blank"),
        ({"title": "x" * (TITLE_LONGEST + 1)}, "title: "),
        ({"title": "a\x00"}, "invalid JSON body"),
        ({"title": "a\x1b"}, "title: must not contain control characters"),
        ({"body": "x" * (BODY_LONGEST + 1)}, "body: "),
        ({"body": "a\x07"}, "body: must not contain control characters"),
        ({"impact": "huge"}, "impact: "),
    ],
)
async def test_a_value_outside_the_bounds_names_its_field(
    api: Api, given: dict[str, str], error: str
) -> None:
    refused = await make(api, 400, **given)
    assert refused["error"].startswith(error)
    made = await make(api)
    again = await call(api, "PATCH", f"/incident-templates/{made['id']}", given, 400)
    assert again == refused
    assert await listed(api) == [made]
    assert len(await audited(api)) == 1


async def test_the_longest_texts_are_stored_as_they_are(api: Api) -> None:
    texts: dict[str, Any] = {
        "name": "\u202eé" * 100,
        "title": "é" * TITLE_LONGEST,
        "body": "<b>é\n" * 2_000,
    }
    made = await make(api, **texts)
    assert {field: made[field] for field in texts} == texts


async def test_a_name_exists_once_in_a_project_in_any_case(api: Api) -> None:
    first = await make(api)
    assert await make(api, 409, name="pAYMENTS") == {"error": "template_exists"}
    other = await make(api, name="Accounts")
    one = f"/incident-templates/{other['id']}"
    assert await call(api, "PATCH", one, {"name": "payments"}, 409) == {"error": "template_exists"}
    await call(api, "POST", path_of(api, "acme/mill"), {"name": "Payments", "title": "x"}, 201)
    await call(api, "DELETE", f"/incident-templates/{first['id']}", status=204)
    assert (await call(api, "PATCH", one, {"name": "payments"}))["name"] == "payments"


async def test_a_project_has_a_bounded_number(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edit_incident_templates, "TEMPLATES_OF_PROJECT_MOST", 2)
    first = await make(api)
    await make(api, name="2")
    assert await make(api, 409, name="3") == {"error": "template_quota"}
    await call(api, "POST", path_of(api, "acme/mill"), {"name": "3", "title": "x"}, 201)
    await call(api, "DELETE", f"/incident-templates/{first['id']}", status=204)
    await make(api, name="3")


@pytest.mark.parametrize("who", ["stranger", "neighbour", "foreign_token"])
async def test_a_template_of_another_project_is_not_found(api: Api, who: str) -> None:
    uid = await api.new_incident_template(name="Payments")
    refusals = []
    for key in (uid, uuid4()):
        refused = await call(
            api, "PATCH", f"/incident-templates/{key}", {"name": "x"}, 404, who=who
        )
        refusals.append(refused)
        await call(api, "DELETE", f"/incident-templates/{key}", status=404, who=who)
    assert refusals[0] == refusals[1]
    await call(api, "GET", path_of(api), status=404, who=who)
    await call(api, "POST", path_of(api), {"name": "x", "title": "x"}, 404, who=who)
    assert await api.rows("select name from incident_templates") == [("Payments",)]


async def test_an_incident_keeps_its_copy(api: Api) -> None:
    uid: UUID = await api.new_incident_template(
        title="Payments fail", impact=IncidentImpact.MAJOR, body="We look."
    )
    texts = {"title": "Payments fail", "impact": "major", "body": "We look."}
    made = await call(api, "POST", f"/projects/{api.project}/incidents", texts, 201)
    await call(api, "PATCH", f"/incident-templates/{uid}", {"title": "x", "body": "y"})
    await call(api, "DELETE", f"/incident-templates/{uid}", status=204)
    assert (await call(api, "GET", f"/incidents/{made['id']}"))["title"] == "Payments fail"
    (first,) = await call(api, "GET", f"/incidents/{made['id']}/updates")
    assert first["body"] == "We look."
