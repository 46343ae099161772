"""A badge shows the status of the page or component, and is valid SVG for every name."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.status_pages.public.badge import component_badge, page_badge, uptime_badge
from leadline.http.status_pages.public.page_text import STATUS
from leadline.http.ui.plots.badge import TEXT_LONGEST
from leadline.http.ui.plots.xml_text import legal
from leadline.storage.status_pages.rules.status_page import Audience, ComponentStatus, render
from tests.status_pages.test_html_public import shop

SVG = "{http://www.w3.org/2000/svg}"
MEASURED = [one for one in ComponentStatus if one is not ComponentStatus.NO_DATA]


def badge_texts(badge: str) -> tuple[str, str]:
    root = ElementTree.fromstring(badge)
    name, status = (element.text or "" for element in root.iter(f"{SVG}text"))
    assert root.attrib["aria-label"] == f"{name}: {status}"
    return name, status


@pytest.mark.parametrize("status", MEASURED)
def test_badges_show_the_status_of_a_component_and_of_the_page(status: ComponentStatus) -> None:
    page = render(shop(status), Audience.PUBLIC)
    assert badge_texts(component_badge(page.components[0])) == ("Part number 0", STATUS[status])
    assert badge_texts(page_badge(page)) == ("Shop", STATUS[status])


def test_an_uptime_badge_shows_its_coverage() -> None:
    page = render(shop(ComponentStatus.OPERATIONAL), Audience.PUBLIC)
    _, figure = badge_texts(uptime_badge(page.components[0]))
    assert figure.startswith("99.9")
    assert "coverage 100" in figure


def test_a_page_without_components_shows_no_data() -> None:
    page = render(shop(), Audience.PUBLIC)
    assert badge_texts(page_badge(page)) == ("Shop", "No data")


def test_the_width_of_a_badge_grows_linearly_with_its_name() -> None:
    def width(title: str) -> float:
        facts = replace(shop(ComponentStatus.OPERATIONAL), title=title)
        badge = page_badge(render(facts, Audience.PUBLIC))
        return float(ElementTree.fromstring(badge).attrib["width"])

    character = width("xx") - width("x")
    assert character > 0
    assert width("x" * 20) == pytest.approx(width("x") + 19 * character)


@given(st.text(max_size=200) | st.sampled_from(["\ufffe", "a\0b", "\ud800", "<&>"]))
def test_any_name_results_in_a_valid_image(title: str) -> None:
    facts = shop(ComponentStatus.OPERATIONAL)
    badge = page_badge(render(replace(facts, title=title), Audience.PUBLIC))
    name, _ = badge_texts(badge)
    assert len(name) <= TEXT_LONGEST
    shown = " ".join(legal(title).split())
    assert name == shown or name[:-1] == shown[: TEXT_LONGEST - 1]
