"""A watched directory, the command line and the console manage one project as code."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.processes.chromium import browsing
from tests.support.processes.daemon_process import LEADLINE, Daemon, Refusal, daemon

from .conftest import Nginx, eventually, project_of, status

pytestmark = [pytest.mark.needs("chromium", "nginx")]


@pytest.fixture
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bundles")


@pytest.fixture
def leadline(watched: Path) -> Iterator[Daemon]:
    config = watched.parent / "leadline.toml"
    config.write_text(f'[providers.file.git]\ndirectory = "{watched}"\n')
    with daemon(LEADLINE_CONFIG=str(config)) as running:
        running.start()
        running.sign_in()
        yield running


def head(leadline: Daemon) -> str:
    (organization,) = leadline.api("GET", "/organizations")
    project = leadline.api("GET", f"/projects/{project_of(leadline)}")
    return (
        f"format: 2\norganization: {organization['slug']}\nproject: {project['slug']}\nmonitors:\n"
    )


def monitors(leadline: Daemon) -> dict[str, Any]:
    listed = leadline.api("GET", f"/projects/{project_of(leadline)}/monitors")
    return {one["slug"]: one for one in listed}


def files(leadline: Daemon) -> dict[str, Any]:
    listed = leadline.api("GET", "/admin/file-providers")["bundles"]
    return {one["path"]: one for one in listed}


def run(leadline: Daemon, token: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LEADLINE, "bundle", *args],
        env={**leadline.environment, "LEADLINE_URL": leadline.url, "LEADLINE_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def new_token(leadline: Daemon) -> str:
    (organization,) = leadline.api("GET", "/organizations")
    body = {"name": "ci", "role": "project_admin"}
    return str(leadline.api("POST", f"/organizations/{organization['id']}/tokens", body)["token"])


@pytest.mark.soak
def test_a_project_as_code(leadline: Daemon, nginx: Nginx, watched: Path, tmp_path: Path) -> None:
    text = head(leadline) + (
        f"  front: {{name: Front, type: http, target: '{nginx.url}', interval_seconds: 5s}}\n"
        "  nightly: {name: Nightly, type: push, interval_seconds: 1h}\n"
        "services:\n"
        "  shop: {name: Shop, monitors: [front, nightly], sli: [front]}\n"
    )
    file = watched / "shop.yaml"
    file.write_text(text)
    eventually(lambda: "front" in monitors(leadline))
    front = monitors(leadline)["front"]
    assert front["management"]["path"] == "shop.yaml"
    eventually(lambda: status(leadline, front["id"]) == "up")
    with pytest.raises(Refusal) as refused:
        leadline.api("PATCH", f"/monitors/{front['id']}", {"name": "By hand"})
    assert refused.value.status == 409

    # An error changes nothing, and is reported with its position.
    file.write_text(text.replace("type: push", "type: pull"))
    eventually(lambda: files(leadline)["shop.yaml"]["status"] == "degraded")
    said = files(leadline)["shop.yaml"]["last_error"]
    assert said.startswith("line 6, column 28: monitors.nightly.type: ")
    assert set(monitors(leadline)) == {"front", "nightly"}

    # An object that the file no longer names is disabled and kept.
    file.write_text(text.replace("  nightly: {", "  weekly: {").replace("nightly]", "weekly]"))
    eventually(lambda: "weekly" in monitors(leadline))
    orphan = monitors(leadline)["nightly"]
    assert (orphan["enabled"], orphan["management"]["read_only"]) == (False, False)
    told = leadline.api("GET", "/admin/file-providers")["providers"][0]
    assert (told["provider"], told["leader"], told["managed_monitors"]) == ("git", True, 2)
    assert told["orphaned_monitors"] == 1

    by_command_line(leadline, nginx, tmp_path)
    in_a_browser(leadline, tmp_path)


def by_command_line(leadline: Daemon, nginx: Nginx, tmp_path: Path) -> None:
    token = new_token(leadline)
    file = tmp_path / "own.yaml"
    entry = f"  own: {{name: Own, type: http, target: '{nginx.url}'}}\n"
    file.write_text(head(leadline).replace("format: 2", "format: 1") + entry)
    plan = run(leadline, token, "plan", str(file), "--exit-code")
    assert (plan.returncode, plan.stderr) == (3, "")
    assert plan.stdout.splitlines() == [
        "+ monitor own",
        "Planned: 1 created, 0 updated, 0 orphaned, 0 unchanged",
    ]
    assert "own" not in monitors(leadline)
    applied = run(leadline, token, "apply", str(file))
    assert applied.returncode == 0, applied.stderr
    assert monitors(leadline)["own"]["management"]["provider"] == "api"
    exported = run(leadline, token, "export", "--project", project_of(leadline))
    assert exported.returncode == 0, exported.stderr
    # Objects of watched files are listed as such, and are not in the export.
    assert "own:" in exported.stdout
    assert "front:" not in exported.stdout
    file.write_text(exported.stdout)
    again = run(leadline, token, "plan", str(file), "--exit-code")
    assert again.returncode == 0, again.stdout + again.stderr
    file.write_text(exported.stdout.replace("type: http", "type: http\n    colour: red"))
    wrong = run(leadline, token, "plan", str(file))
    assert wrong.returncode == 2
    assert "line 8, column 5: monitors.own.colour: is not known here" in wrong.stderr
    # Errors that only the server finds have a position too.
    file.write_text(exported.stdout.replace("type: http", "type: http\n    depends_on: [moon]"))
    wrong = run(leadline, token, "apply", str(file))
    assert wrong.returncode == 2
    assert "line 8, column 5: monitors.own.depends_on: names 'moon'" in wrong.stderr
    assert run(leadline, "wrong", "plan", str(file)).returncode == 1


def in_a_browser(leadline: Daemon, tmp_path: Path) -> None:
    with browsing() as browser:
        page = browser.new_context(java_script_enabled=False).new_page()
        page.set_default_timeout(30_000)
        page.goto(f"{leadline.url}/sign-in")
        page.get_by_label("E-mail").fill("admin@localhost")
        page.get_by_label("Password").fill(leadline.password)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Settings", exact=True).click()
        page.get_by_role("main").get_by_role("link", name="Configuration as code").click()
        box = page.get_by_label("Bundle, in YAML")
        text = box.input_value()
        assert "own:" in text
        box.fill(text.replace("name: Own", "name: Ours").replace("type: http", "type: htp"))
        page.get_by_role("button", name="Plan").click()
        expect(page.get_by_role("alert")).to_contain_text("monitors.own.type")
        box.fill(text.replace("name: Own", "name: Ours"))
        page.get_by_role("button", name="Plan").click()
        expect(page.get_by_role("heading", name="Plan: 1 to change")).to_be_visible()
        page.screenshot(path=tmp_path / "plan.png", full_page=True)
        page.get_by_role("button", name="Apply plan").click()
        expect(page.get_by_role("heading", name="Applied: 1 changed")).to_be_visible()
        assert monitors(leadline)["own"]["name"] == "Ours"
        page.goto(f"{leadline.url}/monitors/{monitors(leadline)['front']['id']}")
        expect(page.get_by_text("Managed by shop.yaml")).to_be_visible()
        page.screenshot(path=tmp_path / "managed.png", full_page=True)
