"""Leadline behind nginx, as documented: cached status pages, and a path of a shared host."""

import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import pytest

from tests.support.processes.daemon_process import Daemon, daemon
from tests.support.processes.documented_commands import DOCS
from tests.support.processes.ports import free_port

from .conftest import eventually, project_of

pytestmark = [pytest.mark.needs("nginx")]
BASE: Final = "/leadline"
OTHER: Final = "the other application"
PAGES_MOST: Final = 90
_LINK: Final = re.compile(
    r'\s(href|action|formaction|src|data-(?!copy|text)[a-z]+)="(/[^"]*|https?:[^"]*)"'
)
Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture
def leadline() -> Iterator[Daemon]:
    with daemon(
        LEADLINE_SERVER__TRUSTED_PROXIES="127.0.0.1/32",
        LEADLINE_SERVER__PUBLIC_BASE_URL="http://status.example.com",
    ) as running:
        running.start()
        running.sign_in()
        yield running


@pytest.fixture
def cached(leadline: Daemon) -> Iterator[str]:
    """The address of nginx with the configuration of the documentation."""
    folder = Path(tempfile.mkdtemp(prefix="leadline-cache-"))
    folder.chmod(0o755)
    port = free_port()
    changed = _documented("explanation/scaling.md", port, leadline.port)
    with _nginx(changed.replace("/var/cache/nginx/leadline", f"{folder}/cache")):
        address = f"http://127.0.0.1:{port}"
        eventually(lambda: fetched(f"{address}/healthz")[0] == 200, 20)
        yield address
    shutil.rmtree(folder, ignore_errors=True)


def _documented(page: str, port: int, behind: int) -> str:
    """Returns the configuration of a page of the documentation, with ports of the test."""
    text = (DOCS / page).read_text()
    (block,) = re.findall(r"^```nginx\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    changed = block.replace("listen 80;", f"listen 127.0.0.1:{port};")
    return str(changed).replace("127.0.0.1:8080", f"127.0.0.1:{behind}")


@contextmanager
def _nginx(text: str) -> Iterator[None]:
    folder = Path(tempfile.mkdtemp(prefix="leadline-nginx-"))
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;"
        f"events {{ }} http {{ access_log off; {temporary}\n{text}\n}}"
    )
    folder.chmod(0o755)
    program = shutil.which("nginx")
    assert program is not None
    with subprocess.Popen([program, "-c", str(config)]) as process:
        try:
            yield
        finally:
            process.terminate()
    shutil.rmtree(folder, ignore_errors=True)


def fetched(url: str, **headers: str) -> Answer:
    request = urllib.request.Request(url)
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()
    except urllib.error.URLError:
        return 0, {}, b""


def page_of(leadline: Daemon, **fields: str) -> tuple[str, str]:
    """Creates a status page. Returns its id and the token that opens it."""
    (organization,) = leadline.api("GET", "/organizations")
    body = {"slug": "team", "title": "Team", "project_id": project_of(leadline), **fields}
    there = f"/organizations/{organization['id']}/status-pages"
    made = leadline.api("POST", there, body)
    return made["id"], made.get("unlisted_token") or ""


def test_pages_are_cached_revalidated_and_gone_when_withdrawn(
    leadline: Daemon, cached: str
) -> None:
    page, _ = page_of(leadline)
    paths = ("/status/team", "/api/v1/public/status-pages/team", "/status/team/badge.svg")
    for path in paths:
        url = f"{cached}{path}"
        eventually(partial(is_hit, url), 10)
        status, headers, body = fetched(url)
        direct = fetched(f"{leadline.url}{path}")
        assert status == direct[0] == 200
        assert headers["etag"] == direct[1]["etag"]
        assert headers["cache-control"] == "public, max-age=1, must-revalidate"
        assert body == direct[2]
        assert fetched(url, If_None_Match=headers["etag"])[0] == 304
        packed = fetched(url, Accept_Encoding="gzip")
        assert packed[1].get("content-encoding") == direct_encoding(leadline, path)
    # Many readers at the same time are few requests of nginx.
    with ThreadPoolExecutor(16) as readers:
        seen = list(
            readers.map(lambda _: fetched(f"{cached}/status/team")[1]["x-cache"], range(64))
        )
    assert seen.count("MISS") <= 2
    leadline.api("DELETE", f"/status-pages/{page}")
    eventually(lambda: all(fetched(f"{cached}{path}")[0] == 404 for path in paths), 20)


def test_no_reader_gets_the_language_of_another_from_the_cache(
    leadline: Daemon, cached: str
) -> None:
    page_of(leadline)
    url = f"{cached}/status/team"
    readers = {"de-DE,de;q=0.9": b'lang="de"', "en-GB": b'lang="en"', "fr": b'lang="en"'}
    for accept in readers:
        eventually(lambda: fetched(url, Accept_Language=accept)[1].get("x-cache") == "HIT", 10)  # noqa: B023
    for _ in range(5):
        for accept, lang in readers.items():
            assert b"<html " + lang in fetched(url, Accept_Language=accept)[2]
        assert b'<html lang="de"' in fetched(f"{url}?lang=de", Accept_Language="en")[2]


def is_hit(url: str) -> bool:
    return fetched(url)[1].get("x-cache") == "HIT"


def direct_encoding(leadline: Daemon, path: str) -> str | None:
    return fetched(f"{leadline.url}{path}", Accept_Encoding="gzip")[1].get("content-encoding")


def test_no_answer_of_a_token_or_a_person_is_cached(leadline: Daemon, cached: str) -> None:
    _, token = page_of(leadline, visibility="unlisted")
    assert token
    for _ in range(3):
        status, headers, _ = fetched(f"{cached}/status/team?token={token}")
        assert status == 200
        assert headers["x-cache"] != "HIT"
        assert headers["cache-control"].startswith("private")
        assert fetched(f"{cached}/status/team")[0] == 404
    # The console and the rest of the API do not pass the cache.
    for path in ("/sign-in", "/api/v1/version", "/healthz"):
        assert "x-cache" not in fetched(f"{cached}{path}")[1]


@pytest.fixture
def below() -> Iterator[Daemon]:
    port = free_port()
    with daemon(
        LEADLINE_SERVER__BASE_PATH=BASE,
        LEADLINE_SERVER__PUBLIC_BASE_URL=f"http://127.0.0.1:{port}{BASE}",
        LEADLINE_SERVER__TRUSTED_PROXIES="127.0.0.1/32",
    ) as running:
        text = _documented("how-to/install.md", port, running.port)
        other = f'return 200 "{OTHER}";'
        with _nginx(text.replace("proxy_pass http://127.0.0.1:9000;", other)):
            running.start()
            # From here on, requests take the way through nginx.
            running.url = f"http://127.0.0.1:{port}{BASE}"
            running.sign_in()
            yield running


def test_every_link_stays_below_the_prefix(below: Daemon) -> None:
    host = below.url.removesuffix(BASE)
    project = project_of(below)
    made = below.api(
        "POST",
        f"/projects/{project}/monitors",
        {"name": "Job", "slug": "job", "type": "push", "interval_seconds": 60},
    )
    page_of(below, visibility="listed")
    assert made["push_url"].startswith(f"{below.url}/api/v1/public/push/")
    assert fetched(made["push_url"])[0] == 200
    waiting, seen = deque([f"{below.url}/", f"{below.url}/status/team"]), set[str]()
    while waiting and len(seen) < PAGES_MOST:
        url = waiting.popleft()
        if url in seen or "sign-out" in url:
            continue
        seen.add(url)
        status, headers, body = fetched(url, Cookie=below.cookie)
        assert status == 200, url
        assert OTHER not in body.decode(errors="replace"), url
        if not headers["content-type"].startswith("text/html"):
            continue
        for name, value in _LINK.findall(body.decode()):
            target = urlsplit(urljoin(url, value.replace("&amp;", "&")))
            if f"{target.scheme}://{target.netloc}" != host:
                continue
            assert target.path.startswith(f"{BASE}/"), (url, name, value)
            if name in ("href", "src", "data-pick"):
                waiting.append(target._replace(fragment="").geturl())
    assert len(seen) == PAGES_MOST


def test_answers_name_the_prefix(below: Daemon) -> None:
    body = {"username": "admin@localhost", "password": below.password}
    _, headers, _ = below.raw("POST", "/auth/local/login", body)
    assert f"; Path={BASE};" in headers["set-cookie"]
    assert below.api("GET", "/openapi.json")["servers"] == [{"url": BASE}]
    project = project_of(below)
    for name in ("a", "b", "c"):
        fields = {"name": name, "slug": name, "type": "push", "interval_seconds": 60}
        below.api("POST", f"/projects/{project}/monitors", fields)
    _, headers, _ = below.raw("GET", f"/api/v1/projects/{project}/monitors?limit=2")
    assert headers["link"].startswith(f"<{below.url}/api/v1/projects/")
    bare = below.cookie
    below.cookie = ""
    request = urllib.request.Request(f"{below.url}/profile", headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert urlsplit(answer.url).path == f"{BASE}/sign-in"
    below.cookie = bare


def test_only_machines_are_answered_without_the_prefix(below: Daemon) -> None:
    process = f"http://127.0.0.1:{below.port}"
    for base in (process, f"{process}{BASE}"):
        for path in ("/healthz", "/readyz", "/metrics"):
            assert fetched(base + path)[0] == 200
    for path in ("/", "/sign-in", "/static/public.css", "/api/v1/version", "/leadlines/sign-in"):
        assert fetched(process + path)[0] == 404
    assert fetched(f"{process}{BASE}")[0] == 200
    eventually(lambda: fetched(f"{below.url}/readyz")[0] == 200, 20)
