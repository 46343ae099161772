"""Limits of a page: 100 KB and 12 requests with its files, compressed, and no third party.

The Content-Security-Policy permits this origin only, so that a page names every file it loads.
"""

import gzip
import re
from pathlib import Path

from leadline.http import ui
from tests.support.app.cast import Api
from tests.support.worlds.service_history import lived

from ..monitors.test_pickers_screen import crowd

STATIC = Path(ui.__file__).with_name("static")
BYTES_MOST = 100_000
REQUESTS_MOST = 12
SCRIPT_BYTES_MOST = 60_000
_LOADED = re.compile(r'<(?:script|link|img|source|iframe)\b[^>]*?(?:src|href)="([^"]*)"')


def packed(data: bytes) -> int:
    return len(gzip.compress(data, mtime=0))


def test_scripts_have_at_most_60_kb_together() -> None:
    assert sum(file.stat().st_size for file in STATIC.glob("*.js")) <= SCRIPT_BYTES_MOST


async def test_pages_of_2000_monitors_are_within_the_limits(api: Api) -> None:
    till = await api.new_monitor(name="Till", tags=["pay"])
    service = await lived(api, "Checkout", till.uid)
    page_uid = await api.new_status_page()
    await crowd(api, till)
    there = f"/projects/{api.project}"
    for path in (
        there,
        f"{there}/monitors",
        f"{there}/monitors/new",
        f"/monitors/{till.uid}",
        f"{there}/services",
        f"/services/{service.uid}",
        f"/services/{service.uid}/declaration",
        f"{there}/incidents/new",
        f"{there}/maintenance?show=plan",
        f"{there}/sla?show=monitors",
        f"{there}/status-pages/{page_uid}",
        f"{there}/search?q=crowd",
    ):
        answer = await api.ask("editor", "GET", path, headers={"Accept": "text/html"})
        assert answer.status_code == 200, path
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        body = await answer.get_data(as_text=False)
        files = set(_LOADED.findall(body.decode()))
        assert all(re.match(r"/(?!/)", file) for file in files), "no third party"
        loaded = [file.partition("?")[0] for file in files if file.startswith("/static/")]
        assert 1 + len(files) <= REQUESTS_MOST, path
        size = packed(body) + sum(packed((STATIC / name[8:]).read_bytes()) for name in loaded)
        assert size <= BYTES_MOST, (path, size)
