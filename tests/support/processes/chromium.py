"""The browser of the tests: Debian's Chromium without a window."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

# The headless shell opens a page for a quarter of the CPU that the whole Chromium takes.
EXECUTABLES: Final = ("chromium-headless-shell", "chromium")
# The browser's own requests must not leave the machine.
ARGUMENTS: Final = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # A host that is not localhost, so that the browser treats plain HTTP as insecure.
    "--host-resolver-rules=MAP cellar.test 127.0.0.1",
]


def executable() -> str | None:
    """Returns the path of the first browser that is installed."""
    return next(filter(None, map(shutil.which, EXECUTABLES)), None)


# The driver of this process: a second one cannot start while the first one runs.
_drivers: "list[Playwright]" = []


@contextmanager
def browsing() -> "Iterator[Browser]":
    """Runs a browser until the end of the block. Blocks can be nested."""
    with _driver() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def _driver() -> "Iterator[Playwright]":
    # Imported here: most tests need no browser.
    from playwright.sync_api import sync_playwright

    if _drivers:
        yield _drivers[-1]
        return
    with sync_playwright() as playwright:
        _drivers.append(playwright)
        try:
            yield playwright
        finally:
            _drivers.remove(playwright)
