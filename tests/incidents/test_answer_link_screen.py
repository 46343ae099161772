"""The page of a link in a message: it finds the recipients of a reassignment without a session."""

from urllib.parse import urlencode

from tests.support.app.cast import Api

from ..oncall.test_oncall_screen import FORM, text_of
from .test_answers_api import NOBODY, paged


async def test_a_link_reassigns_to_a_typed_name_and_names_nobody_afterwards(api: Api) -> None:
    _, _, token = await paged(api, "email", to="a@example.com")
    path = f"/answer/{token}"
    page = await text_of(await api.ask(NOBODY, "GET", path))
    assert f'data-pick="{path}/pick?kind=assignee"' in page
    policy = "n, escalation policy"
    found = await text_of(await api.ask(NOBODY, "GET", f"{path}/pick?kind=assignee&q=n"))
    assert f'data-text="{policy}"' in found

    async def post(text: str) -> str:
        data = urlencode({"act": "reassign", "assignee": text}).encode()
        return await text_of(await api.ask(NOBODY, "POST", path, data=data, headers=FORM))

    wrong = await post("nobody of this name")
    assert "names no assignee of this project" in wrong
    assert 'value="nobody of this name"' in wrong
    assert "must be a person or an escalation policy" in await post("")
    assert "Reassigned." in await post(policy)
    assert await api.rows("select assigned_label from incidents") == [("n",)]
    # A used link, and a text that is no link, name nobody.
    for used in (path, f"{path[:-2]}xx"):
        answer = await api.ask(NOBODY, "GET", f"{used}/pick?kind=assignee")
        assert answer.status_code == 404
    assert "data-pick" not in await text_of(await api.ask(NOBODY, "GET", path))
    for text in ("n", policy, "nobody of this name"):
        said = await post(text)
        assert "names no" not in said
        assert "matches several" not in said
        assert "Reassigned by" in said or "already" in said or "used" in said


async def test_the_link_of_a_viewer_names_nobody(api: Api) -> None:
    _, _, token = await paged(api, "email", to="a@example.com")
    path = f"/answer/{token}"
    async with api.pool.transaction("demote") as tx:
        await tx.execute("update memberships set role = 'viewer' where role <> 'viewer'")
    answer = await api.ask(NOBODY, "GET", f"{path}/pick?kind=assignee")
    assert answer.status_code == 403
    assert "escalation policy" not in await text_of(await api.ask(NOBODY, "GET", path))
    for text in ("n", "nobody of this name"):
        data = urlencode({"act": "reassign", "assignee": text}).encode()
        said = await text_of(await api.ask(NOBODY, "POST", path, data=data, headers=FORM))
        assert "Your role in the project does not allow it" in said
