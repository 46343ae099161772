"""Console forms of managed on-call objects refuse edits with a reason, and have no button."""

from typing import Any
from urllib.parse import urlencode

from leadline.http.ui.bundle_notice import MANAGED_SAID
from tests.bundles.test_bundle_on_call_api import ALL, DAY, MAIL, bundle, listed, prepare, with_mail
from tests.bundles.test_bundles_api import applied
from tests.oncall.test_oncall_screen import hidden
from tests.oncall.test_oncall_screen import turns as rows_of
from tests.support.app.cast import Api

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def sent(api: Api, path: str, form: dict[str, Any]) -> tuple[int, str]:
    body = urlencode(form, doseq=True).encode()
    answer = await api.ask("editor", "POST", path, data=body, headers=FORM)
    return answer.status_code, await answer.get_data(as_text=True)


async def seen(api: Api, path: str) -> str:
    answer = await api.ask("editor", "GET", path)
    assert answer.status_code == 200
    return await answer.get_data(as_text=True)


async def test_each_form_of_a_managed_object_says_so_and_has_no_button(api: Api) -> None:
    email = await prepare(api)
    day = {**with_mail(DAY, email), "layers": [], "participants": [{"person": email}]}
    every = {**with_mail(ALL, email), "default": True}
    await applied(
        api,
        bundle(
            channels={"ops": {**MAIL, "name": "Ops"}},
            schedules={"day": day},
            escalation_policies={"all": every},
            routes={"default": {"escalation_policy": "all"}},
        ),
    )
    home = f"/projects/{api.project}"
    channel = (await listed(api, "notification-channels"))["Ops"]["id"]
    schedule = f"/oncall-schedules/{(await listed(api, 'oncall-schedules'))['Day']['id']}/edit"
    uid = (await listed(api, "escalation-policies"))["all"]["id"]
    policy = f"/escalation-policies/{uid}/edit"
    ops = {"channel": channel, "name": "Other", "config.topic": "b"}
    member = str(api.users["editor"][1])
    step = {"name": "Other", "after-0": "60", "targets-0": member}
    turns: dict[str, Any] = {
        "name": "Other",
        "shift": "2",
        "unit": "days",
        "anchor": "2026-01-05T08:00",
    }
    shown = await seen(api, schedule)
    turns |= {"participant": rows_of(shown)[0], "participant_was": hidden(shown, "participant_was")}
    pages = {
        f"{home}/channels": [("disable", ops), ("delete", ops)],
        f"{home}/channels?show=edit&uid={channel}": [("save", ops)],
        f"{home}/channels?show=delete&uid={channel}": [("delete", ops), ("disable", ops)],
        schedule: [("save", turns), ("delete", turns)],
        policy: [("save", step), ("delete", step)],
        f"{home}/on-call": [("default-policy", {"policy": ""})],
        f"{home}/alert-routes?show=edit": [("save", {"default": "", "default_was": ""})],
    }
    for path, acts in pages.items():
        page = await seen(api, path)
        assert "Managed by" in page or "managed by a bundle" in page, path
        for act, form in acts:
            assert f'name="act" value="{act}"' not in page, (path, act)
            status, said = await sent(api, path.partition("?")[0], {"act": act, **form})
            assert status == 400, (path, act)
            assert MANAGED_SAID in said, (path, act)
            assert ": ." not in said, (path, act)
    assert (await listed(api, "notification-channels"))["Ops"]["enabled"] is True
