"""Badges of a status page and of its components."""

from ....storage.status_pages.rules.status_page import Component, ComponentStatus, Page
from ...ui.formatting import NOTHING
from ...ui.plots.badge import badge
from . import page_text as words
from .language import phrase


def page_badge(page: Page) -> str:
    """Returns a badge with the worst status of the page."""
    status = page.summary.status
    said = words.status_word(status)
    if page.summary.unmeasured and status is ComponentStatus.OPERATIONAL:
        said = f"{said}, {page.summary.unmeasured} {phrase('day.not_measured')}"
    return badge(page.title, said, words.MARK[status])


def component_badge(component: Component) -> str:
    return badge(component.name, words.status_word(component.status), words.MARK[component.status])


def uptime_badge(component: Component) -> str:
    """Returns a badge with the availability over 90 days and its coverage.

    A withheld availability is a dash.
    """
    figure = words.figure_of(component)
    said = NOTHING if figure is None else figure.text
    if figure is not None and not figure.withheld:
        said = f"{said}, {figure.note}"
    # An availability has no objective here, so it gets a neutral mark.
    return badge(component.name, said, "unknown")
