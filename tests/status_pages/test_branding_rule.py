"""Every branding field has bounds, and an accepted URL cannot inject into the security policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.status_pages.rules.branding import (
    ANNOUNCEMENT_LONGEST,
    FOOTER_LONGEST,
    NAME_LONGEST,
    NO_BRANDING,
    URL_LONGEST,
    Announcement,
    Branding,
    branding_fault,
    origin_of,
)

LONG_URL = "https://a.example/" + "a" * URL_LONGEST


def test_empty_branding_is_valid() -> None:
    assert branding_fault(NO_BRANDING) is None


@pytest.mark.parametrize(
    ("field", "branding"),
    [
        ("product_name", Branding(product_name="a" * (NAME_LONGEST + 1))),
        ("product_name", Branding(product_name="a\nb")),
        ("footer_text", Branding(footer_text="a" * (FOOTER_LONGEST + 1))),
        ("accent_color", Branding(accent_color="17559c")),
        ("accent_color", Branding(accent_color="#17559")),
        ("accent_color", Branding(accent_color="#17559cc")),
        ("accent_color", Branding(accent_color="#17559c\n")),
        ("accent_color", Branding(accent_color="red")),
        ("logo_url", Branding(logo_url="http://a.example/logo.svg")),
        ("logo_url", Branding(logo_url="https:///logo.svg")),
        ("logo_url", Branding(logo_url="javascript:alert(1)")),
        ("logo_url", Branding(logo_url="https://a.example; script-src *")),
        ("logo_url", Branding(logo_url="https://user:secret@a.example/")),
        ("logo_url", Branding(logo_url="https://a.example:port/")),
        ("logo_url", Branding(logo_url="https://a\x01.example/logo.svg")),
        ("logo_url", Branding(logo_url="https://a.example/\0")),
        ("logo_url", Branding(logo_url="https://a.example/\x7f")),
        ("logo_url", Branding(logo_url="https://*/logo.svg")),
        ("logo_url", Branding(logo_url="https://*.a.example/logo.svg")),
        ("logo_url", Branding(logo_url="https://(a)/logo.svg")),
        ("logo_url", Branding(logo_url="https://a.example:/logo.svg")),
        ("logo_url", Branding(logo_url=LONG_URL)),
        ("support_url", Branding(support_url="mailto:help@a.example")),
        ("announcement.text", Branding(announcement=Announcement(enabled=True, text=" "))),
        (
            "announcement.text",
            Branding(announcement=Announcement(text="a" * (ANNOUNCEMENT_LONGEST + 1))),
        ),
    ],
)
def test_a_fault_names_the_invalid_field(field: str, branding: Branding) -> None:
    fault = branding_fault(branding)
    assert fault is not None
    assert fault[0] == field


@pytest.mark.parametrize(
    "url", ["https://a.example", "https://a.example:8443/x/logo.svg?v=1", "https://[2001:db8::1]/"]
)
def test_an_https_url_is_valid_and_begins_with_its_origin(url: str) -> None:
    assert branding_fault(Branding(logo_url=url, support_url=url)) is None
    assert url.startswith(origin_of(url))


@given(st.text(max_size=60))
def test_the_origin_of_a_valid_url_has_no_policy_characters(text: str) -> None:
    url = f"https://{text}"
    if branding_fault(Branding(logo_url=url)) is None:
        origin = origin_of(url)
        assert origin.isascii()
        assert origin.isprintable()
        assert not set(origin) & set(" ;,'\"<>\\@")
