"""Helpers of the browser tests: sizes of a page, monitors of a daemon, and the status of a page."""

from typing import Any

from playwright.sync_api import Page, ViewportSize

from tests.support.processes.daemon_process import Daemon

PHONE: ViewportSize = {"width": 390, "height": 844}
TABLET: ViewportSize = {"width": 1024, "height": 800}
WIDE: ViewportSize = {"width": 1440, "height": 900}
DESK: ViewportSize = {"width": 1280, "height": 900}


def make_monitor(leadline: Daemon, project: str, target: str, **given: Any) -> str:
    body = {
        "name": "Shop",
        "type": "http",
        "target": target,
        "interval_seconds": 5,
        "timeout_seconds": 2,
        **given,
    }
    return str(leadline.api("POST", f"/projects/{project}/monitors", body)["id"])


def status_of(page: Page, path: str) -> int:
    answer = page.goto(path)
    assert answer is not None
    return answer.status
