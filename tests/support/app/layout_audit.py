"""Faults of a page's layout that a reader sees: cut, broken, overlapping or overflowing content."""

from pathlib import Path
from typing import Final

from playwright.sync_api import Page

# Longer words, such as ids and URLs, may break.
WORD_LONGEST: Final = 22
TOUCH_LEAST: Final = 40
_SCRIPT: Final = Path(__file__).with_suffix(".js").read_text()
_CONTRAST: Final = Path(__file__).with_name("contrast_audit.js").read_text()


def layout_faults(page: Page, *, is_phone: bool) -> list[str]:
    """Returns the faults of the page in its present size, at most 30."""
    found: list[str] = page.evaluate(_SCRIPT, [WORD_LONGEST, TOUCH_LEAST, is_phone])
    return found


def faint_texts(page: Page) -> list[str]:
    """Returns texts with a contrast below that of WCAG AA against the colors of their ancestors.

    It takes a tenth of the time of axe's rule, which also considers elements that cover a text.
    """
    found: list[str] = page.evaluate(_CONTRAST)
    return found
