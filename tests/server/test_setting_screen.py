"""Forms for settings of the installation: they show and set the values of the API, and keep the
input of a refused form.
"""

from urllib.parse import urlencode

import pytest

from tests.support.app.cast import Api
from tests.support.app.serving import call

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
DEFAULTS = {
    "interval_seconds": "30",
    "timeout_seconds": "7",
    "retries": "2",
    "failure_threshold": "3",
    "renotify_seconds": "600",
    "auto_incident": "on",
}
BRANDING = {
    "product_name": "Acme status",
    "accent_color": "#112233",
    "logo_url": "https://acme.example/logo.svg",
    "footer_text": "One line\r\nand another",
    "support_url": "",
    "announcement_enabled": "on",
    "announcement_text": "We move house.",
    "announcement_level": "warning",
}


async def shown(api: Api, path: str) -> str:
    answer = await api.ask("global_admin", "GET", path)
    text: str = await answer.get_data(as_text=True)
    assert answer.status_code == 200, text
    return text


async def typed(api: Api, path: str, **fields: str) -> tuple[int, str]:
    data = urlencode(fields).encode()
    answer = await api.ask("global_admin", "POST", path, data=data, headers=FORM)
    return answer.status_code, await answer.get_data(as_text=True)


async def test_monitor_defaults_are_shown_and_set(api: Api) -> None:
    path = "/admin/monitor-defaults"
    assert "Built-in default" in await shown(api, path)
    assert (await typed(api, path, **DEFAULTS))[0] == 303
    set_ = {
        "configured": True,
        "interval_seconds": 30,
        "timeout_seconds": 7,
        "retries": 2,
        "failure_threshold": 3,
        "renotify_seconds": 600,
        "auto_incident": True,
    }
    assert await call(api, "GET", "/settings/monitor-defaults", who="global_admin") == set_
    page = await shown(api, path)
    assert 'name="interval_seconds" type="number" inputmode="numeric" required value="30"' in page
    assert 'type="checkbox" value="on" checked' in page
    without = {name: value for name, value in DEFAULTS.items() if name != "auto_incident"}
    assert (await typed(api, path, **without))[0] == 303
    found = await call(api, "GET", "/settings/monitor-defaults", who="global_admin")
    assert found == {**set_, "auto_incident": False}


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("interval_seconds", "4", "Interval: must be 5 to 86400 seconds."),
        ("interval_seconds", "soon", "Interval: must be a whole number."),
        ("timeout_seconds", "31", "Timeout: must not be above the interval."),
        ("retries", "", "Retries: must be a whole number."),
        ("renotify_seconds", "5", "Re-notify interval: must be 0 or 60 to 86400 seconds."),
    ],
)
async def test_refused_monitor_defaults_stay_in_the_form(
    api: Api, field: str, value: str, said: str
) -> None:
    path = "/admin/monitor-defaults"
    status, page = await typed(api, path, **{**DEFAULTS, field: value})
    assert status == 400
    assert said in page
    assert f'id="wrong-{field}"' in page
    assert f'value="{value}"' in page
    found = await call(api, "GET", "/settings/monitor-defaults", who="global_admin")
    assert found["configured"] is False


async def test_branding_is_shown_and_set(api: Api) -> None:
    path = "/admin/branding"
    assert "Product name: Leadline." in await shown(api, path)
    assert (await typed(api, path, **BRANDING))[0] == 303
    found = await call(api, "GET", "/settings/branding", who="global_admin")
    assert found == {
        "configured": True,
        "product_name": "Acme status",
        "accent_color": "#112233",
        "logo_url": "https://acme.example/logo.svg",
        "footer_text": "One line\nand another",
        "support_url": "",
        "announcement": {"enabled": True, "text": "We move house.", "level": "warning"},
    }
    page = await shown(api, path)
    assert "Product name: Acme status." in page
    assert '<option value="warning" selected>' in page
    for field, value, said in (
        ("accent_color", "red", "Accent: must be a colour as #rrggbb."),
        ("logo_url", "http://a.example/", "Logo: must be an https URL."),
        ("announcement_text", "", "Announcement: is required if it is enabled."),
        ("announcement_level", "loud", "Level: choose a value from the list."),
    ):
        status, page = await typed(api, path, **{**BRANDING, field: value})
        assert status == 400
        assert said in page
    assert await call(api, "GET", "/settings/branding", who="global_admin") == found


async def test_refused_input_is_escaped(api: Api) -> None:
    hostile = '"><script>alert(1)</script>'
    _, page = await typed(api, "/admin/branding", **{**BRANDING, "accent_color": hostile})
    assert hostile not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("path", "field"),
    [("/admin/mail", "smtp_password"), ("/admin/single-sign-on", "client_secret")],
)
async def test_an_oversized_value_is_refused_at_its_field(api: Api, path: str, field: str) -> None:
    fields = {"smtp_port": "587", field: "x" * 5_000}
    status, page = await typed(api, path, **fields)
    assert status == 400
    assert f'id="wrong-{field}"' in page
    assert "xxxxx" not in page


async def test_a_setting_is_found_by_its_name_or_description(api: Api) -> None:
    path = f"/projects/{api.project}/settings"
    page = (await shown(api, f"{path}?q=DELETION")).partition("<main")[2]
    assert "<b>General</b>" in page
    assert "<b>Channels</b>" not in page
    assert "No settings match “nothing of this name”" in await shown(
        api, f"{path}?q=nothing of this name"
    )
