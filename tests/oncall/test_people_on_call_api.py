"""People as targets, participants and overrides in the API, and the refusal to remove them."""

from typing import Any

from leadline.storage.core.instant import DAY, HOUR, Instant, to_text
from tests.conftest import FROZEN_NOW
from tests.oncall.test_oncall_api import call, ladder, policies, schedule, schedules
from tests.support.app.cast import Api


async def members(api: Api) -> dict[str, str]:
    path = f"/organizations/{api.org}/members"
    found: list[Any] = await call(api, "GET", path, who="org_admin")
    return {one["user_id"]: one["id"] for one in found}


async def test_a_step_names_a_person_by_the_id_of_the_user(api: Api) -> None:
    _, person = api.users["viewer"]
    body = ladder((0, [("person", person)]))
    made = await call(api, "POST", policies(api), body, 201)
    assert made["steps"] == body["steps"]
    assert await call(api, "PUT", f"/escalation-policies/{made['id']}", body) == made
    listed = f"/projects/{api.project}/notification-channels"
    assert await call(api, "GET", listed) == []
    await call(api, "DELETE", f"/notification-channels/{person}", None, 404)
    refused = await call(api, "POST", policies(api), ladder((0, [("channel", person)])), 400)
    assert refused["error"].startswith("steps[0].targets[0].id: ")


async def test_a_user_of_another_organization_is_no_member(api: Api) -> None:
    stranger = await api.new_user()
    refused = await call(api, "POST", policies(api), ladder((0, [("person", stranger)])), 400)
    assert refused == {"error": "steps[0].targets[0].id: does not exist in this project"}


async def test_participants_and_overrides_are_people(api: Api) -> None:
    channel = await api.new_channel()
    _, person = api.users["viewer"]
    body = schedule(person, channel)
    made = await call(api, "POST", schedules(api), body, 201)
    assert made["participants"] == [str(person), str(channel)]
    now = await call(api, "GET", f"/oncall-schedules/{made['id']}/current")
    assert (now["channel_id"], now["channel_name"]) == (str(person), "viewer")
    _, other = api.users["editor"]
    span = {
        "starts_at": to_text(FROZEN_NOW),
        "ends_at": to_text(Instant(FROZEN_NOW + HOUR)),
        "channel_id": str(other),
    }
    await call(api, "POST", f"/oncall-schedules/{made['id']}/overrides", span, 201)
    now = await call(api, "GET", f"/oncall-schedules/{made['id']}/current")
    assert now["channel_id"] == str(other)
    assert now["until"] <= to_text(Instant(FROZEN_NOW + DAY))


async def test_a_member_on_call_is_removed_only_after_the_references(api: Api) -> None:
    _, person = api.users["viewer"]
    made = await call(api, "POST", policies(api), ladder((0, [("person", person)])), 201)
    one = f"/organizations/{api.org}/members/{(await members(api))[str(person)]}"
    user = f"/admin/users/{person}"
    assert await call(api, "DELETE", one, None, 409, "org_admin") == {"error": "in_use"}
    assert await call(api, "DELETE", user, None, 409, "global_admin") == {"error": "in_use"}
    # A second membership covers the project.
    body = {"user_id": str(person), "role": "viewer", "project_id": str(api.project)}
    await call(api, "POST", f"/organizations/{api.org}/members", body, 201, "org_admin")
    await call(api, "DELETE", one, None, 204, "org_admin")
    assert await call(api, "DELETE", user, None, 409, "global_admin") == {"error": "in_use"}
    await call(api, "DELETE", f"/escalation-policies/{made['id']}", None, 204)
    await call(api, "DELETE", user, None, 204, "global_admin")
    people = "select count(*) from notification_channels where person is not null"
    assert await api.rows(people) == [(0,)]


async def test_a_policy_in_a_step_is_kept_and_a_circle_is_refused(api: Api) -> None:
    channel = await api.new_channel()
    inner = await call(api, "POST", policies(api), ladder((0, [("channel", channel)])), 201)
    body = ladder((0, [("channel", channel)]), (60, [("policy", inner["id"])]))
    outer = await call(api, "POST", policies(api), body, 201)
    assert outer["steps"] == body["steps"]
    one = f"/escalation-policies/{inner['id']}"
    assert await call(api, "DELETE", one, None, 409) == {"error": "in_use"}
    circle = ladder((0, [("policy", outer["id"])]))
    refused = await call(api, "PUT", one, circle, 400)
    assert refused == {"error": "steps: must not lead back to this policy"}
    own = await call(api, "PUT", one, ladder((0, [("policy", inner["id"])])), 400)
    assert own == {"error": "steps: must not lead back to this policy"}
    listed = await call(api, "GET", policies(api))
    assert [policy["steps"] for policy in listed] == [inner["steps"], outer["steps"]]
    await call(api, "DELETE", f"/escalation-policies/{outer['id']}", None, 204)
    await call(api, "DELETE", one, None, 204)
