"""Files of other tools are imported in the browser: preview with a report, then the plan."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from leadline.http.importers import CannotImport
from leadline.http.importers.uploaded_file import read_upload
from tests.bundles.test_bundle_screen import listed, revision, seen, send
from tests.importers.test_on_call_models_rule import TOOLS as ON_CALL
from tests.importers.test_on_call_models_rule import USERS
from tests.support.app.cast import Api
from tests.support.app.serving import call
from tests.support.app.sockets import asked_during_sending, served

BOUNDARY = "----shop"
KUMA = {
    "monitorList": [
        {
            "id": 1,
            "name": "Shop",
            "type": "http",
            "url": "https://shop.example.org/",
            "interval": 60,
            "authMethod": "basic",
            "basic_auth_user": "u",
            "basic_auth_pass": "hunter2",
            "headers": '{"Cookie": "s=hunter2"}',
            "cacheBust": True,
        },
        {"id": 2, "name": "Steam <b>", "type": "steam", "pushToken": "hunter2"},
        {"id": 3, "name": "Db", "type": "port", "hostname": "db", "port": 5432, "interval": 60},
        {"id": 4, "name": "In", "type": "http", "url": "https://u:hunter2@i.example.org/"},
    ]
}
GATUS = "endpoints: [{name: Web, url: 'https://e.example.org', conditions: ['[STATUS] == 200']}]"
CHECKS = {"checks": [{"name": "Backup", "timeout": 3600, "grace": 60, "tags": ""}]}
TARGETS = "[{targets: ['https://b.example.org'], labels: {module: own}}]"
MODULES = "modules: {own: {prober: http, timeout: 7s}}"


def part(name: str, value: str | bytes, *, is_file: bool = False) -> bytes:
    file = '; filename="C:\\a \\"b\\".json"\r\nContent-Type: application/json' if is_file else ""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
    data = value if isinstance(value, bytes) else value.encode()
    return head.encode() + data + b"\r\n"


async def sent(
    api: Api, fields: dict[str, str], files: dict[str, str | bytes], who: str = "project_admin"
) -> tuple[int, str]:
    body = b"".join(part(*one) for one in fields.items())
    body += b"".join(part(*one, is_file=True) for one in files.items())
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    data = body + f"--{BOUNDARY}--\r\n".encode()
    path = f"/projects/{api.project}/import"
    answer = await api.ask(who, "POST", path, data=data, headers=headers)
    return answer.status_code, await answer.get_data(as_text=True)


async def test_an_import_is_shown_with_its_losses_and_then_applied(api: Api) -> None:
    some = {"monitorList": [KUMA["monitorList"][2], KUMA["monitorList"][1]]}
    status, page = await sent(api, {"tool": "kuma"}, {"file": json.dumps(some)})
    assert status == 200
    assert "Uptime Kuma: 1 imported, 1 skipped" in page
    assert "Plan: 1 to add" in page
    for text in ("Steam &lt;b&gt;", "is of type steam", "notifications, status pages"):
        assert text in page
    assert "hunter2" not in page
    assert await listed(api) == []
    start = page.index('class="mono">', page.index('id="bundle"')) + len('class="mono">\n')
    text = page[start : page.index("</textarea>", start)].replace("&#39;", "'")
    given = {"bundle": text, "name": "kuma", "revision": revision(page)}
    status, page = await send(api, act="apply", **given)
    assert (status, "Applied: 1 added" in page) == (200, True)
    (made,) = await listed(api)
    assert (made["name"], made["management"]["path"]) == ("Db", "kuma")


async def test_no_secret_of_the_file_is_in_a_page(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    status, page = await sent(api, {"tool": "kuma", "text": json.dumps(KUMA)}, {"file": ""})
    # The plan needs the secret that the report names. The report and the bundle stay.
    assert status == 400
    assert "make it the secret shop-password" in page
    assert "monitor Shop: cacheBust is not carried over" in page
    assert "config.password_ref" in page
    assert "The bundle is not applied." in page
    pages = [page]
    for text in ("hunter2", json.dumps({"hunter2": 1}), '{"monitorList": "hunter2"}'):
        for tool in ("kuma", "gatus", "healthchecks", "blackbox"):
            status, page = await sent(api, {"tool": tool, "text": text}, {})
            assert (status, "File: " in page) == (400, True)
            pages.append(page)
    assert "hunter2" not in "".join(pages) + caplog.text


@pytest.mark.parametrize(
    ("tool", "file", "modules", "name"),
    [
        ("gatus", GATUS, "", "Web"),
        ("healthchecks", json.dumps(CHECKS), "", "Backup"),
        ("blackbox", TARGETS, MODULES, "b.example.org"),
    ],
)
async def test_each_tool(api: Api, tool: str, file: str, modules: str, name: str) -> None:
    status, page = await sent(
        api, {"tool": tool, "name": "old-tool"}, {"file": file, "modules": modules}
    )
    assert status == 200
    assert "1 imported, 0 skipped" in page
    assert name in page
    assert 'value="old-tool"' in page
    assert ("timeout_seconds: 7" in page) == bool(modules)


@pytest.mark.parametrize("tool", ON_CALL)
async def test_on_call_becomes_a_bundle_of_its_people(api: Api, tool: str) -> None:
    text = json.dumps(ON_CALL[tool][0])
    status, page = await sent(api, {"tool": tool}, {"file": text})
    assert status == 400
    assert "is not a member of the project" in page
    members = await call(api, "GET", f"/organizations/{api.org}/members", who="org_admin")
    emails = [one["email"] for one in members if "project_id" not in one]
    for user, email in zip(USERS, emails, strict=False):
        text = text.replace(f"{user}@example.com", email)
    status, page = await sent(api, {"tool": tool}, {"file": text})
    assert status == 200
    assert "Plan: " in page
    assert "schedule" in page
    assert 'value="apply"' in page


async def test_faults_name_the_field_and_nothing_is_read(api: Api) -> None:
    for fields, said in (
        ({"tool": "kuma"}, "File: choose a file, or paste its text."),
        ({"tool": "kuma", "name": "a b", "text": "{}"}, "Name: must have 1 to 63 letters"),
        ({"tool": "nagios", "text": "{}"}, "tool: must be one of kuma, gatus"),
        ({"tool": "kuma", "text": '{"monitorList": []}'}, "contains nothing that can be imported"),
    ):
        status, page = await sent(api, fields, {"file": ""})
        assert status == 400
        assert said in page
    assert (await sent(api, {"tool": "kuma"}, {}, who="editor"))[0] == 403
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    path = f"/projects/{api.project}/import"
    for data in (b"", b"--x\r\n", b"--x\r\nno\r\n\r\n\r\n--x--", b"--y--", b"--x\r\n\r\n\r\n--x--"):
        answer = await api.ask("project_admin", "POST", path, data=data, headers=form)
        assert answer.status_code == 400, data
    # A screen without files refuses the media type.
    path = f"/projects/{api.project}/secrets"
    answer = await api.ask("project_admin", "POST", path, data=b"--x--", headers=form)
    assert answer.status_code == 415
    page = await seen(api, f"/projects/{api.project}/bundle")
    assert f'href="/projects/{api.project}/import"' in page


def database(tmp_path: Path, *statements: str) -> bytes:
    path = tmp_path / "kuma.db"
    with closing(sqlite3.connect(path)) as made:
        made.execute("pragma journal_mode = wal")
        for statement in statements:
            made.execute(statement)
        made.commit()
        made.execute("pragma wal_checkpoint(truncate)")
    return path.read_bytes()


TAGS = ("create table tag (id, name)", "create table monitor_tag (monitor_id, tag_id, value)")


def test_a_database_in_wal_mode_is_read(tmp_path: Path) -> None:
    columns = "create table monitor (id, name, type, hostname, port, interval, active)"
    row = "insert into monitor values (1, 'Db', 'port', 'db', 5432, 60, 1)"
    assert set(read_upload("kuma", database(tmp_path, columns, *TAGS, row)).monitors) == {"db"}


COMPUTED = "it has a view, a virtual table or a computed column"
ENDLESS = "with recursive n(id) as (select 1 union all select id + 1 from n) select id from n"


@pytest.mark.parametrize(
    ("monitor", "said"),
    [
        (
            f"create view monitor as {ENDLESS}",
            "it has a view, a virtual table or a computed column",
        ),
        (
            "create virtual table monitor using fts5(id)",
            "it has a view, a virtual table or a computed column",
        ),
    ],
)
def test_a_database_without_end_is_refused(tmp_path: Path, monitor: str, said: str) -> None:
    with pytest.raises(CannotImport, match=said):
        read_upload("kuma", database(tmp_path, monitor, *TAGS))


def test_a_long_join_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leadline.http.importers.kuma_file._STEPS_MOST", 0)
    rows = "insert into {} with recursive n(i) as (select 1 union all select i + 1 from n"
    rows += " where i < 3000) select i{} from n"
    made = database(
        tmp_path,
        "create table monitor (id)",
        *TAGS,
        rows.format("monitor", ""),
        rows.format("tag", ", 'x'"),
    )
    with pytest.raises(CannotImport, match="interrupted"):
        read_upload("kuma", made)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 5000, "nested deeper than 64"),
        ("endpoints: &a [*a]", "alias of a value that contains it"),
        (
            "a0: &a0 [1]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
            "more than 200000 values",
        ),
        (
            "a0: &a0 {x: 1}\n"
            + "".join(
                f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 9)
            ),
            "more than 200000 values",
        ),
        ("endpoints: 2024-99-99", "is no YAML"),
    ],
)
def test_yaml_without_bounds_is_refused(text: str, said: str) -> None:
    for kind in ("gatus", "blackbox"):
        with pytest.raises(CannotImport, match=said):
            read_upload(kind, text.encode())


def test_anchors_and_merges_are_read() -> None:
    text = (
        "defaults: &d {interval: 30s, conditions: ['[STATUS] == 200']}\n"
        "endpoints: [{<<: *d, name: Web, url: 'https://w.example.org'}]\n"
    )
    assert read_upload("gatus", text.encode()).monitors["web"]["interval_seconds"] == 30


def test_nested_json_and_large_files_are_refused() -> None:
    with pytest.raises(CannotImport):
        read_upload("kuma", b"[" * 200_000)
    with pytest.raises(CannotImport, match="8 MiB: use leadline bundle import"):
        read_upload("kuma", b" " * ((8 << 20) + 1))


def upload(api: Api, who: str, data: bytes, framing: str = "length") -> bytes:
    """Returns the request as a browser sends it, or in chunks of 64 KiB."""
    body = part("tool", "kuma") + part("file", data, is_file=True) + f"--{BOUNDARY}--\r\n".encode()
    lines = [f"POST /projects/{api.project}/import HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in api.credentials[who].items()]
    lines += [f"Content-Type: multipart/form-data; boundary={BOUNDARY}", "Connection: close"]
    if framing == "length":
        return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
    sizes = range(0, len(body), 1 << 16)
    pieces = [body[at : at + (1 << 16)] for at in sizes]
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"
    return "\r\n".join([*lines, "Transfer-Encoding: chunked", "", ""]).encode() + chunks


@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_file_of_the_stated_size_arrives_at_the_server(api: Api, framing: str) -> None:
    empty = b'{"monitorList": []}'
    async with served(api.context) as port:
        for size, status, said in (
            (7 << 20, 400, "contains nothing that can be imported"),
            ((8 << 20) + 1, 400, "is larger than 8 MiB"),
            (10 << 20, 413, "file or text is too large"),
        ):
            sent_ = upload(api, "project_admin", empty + b" " * size, framing)
            told = await asked_during_sending(port, sent_)
            assert told.status == status, (size, told.body)
            assert said in told.body
        # A person without the right is refused before the file is read.
        told = await asked_during_sending(port, upload(api, "editor", b" " * (3 << 20), framing))
        assert told.status == 403


async def test_a_report_with_halves_of_characters_is_shown(api: Api) -> None:
    some = r'{"monitorList": [{"name": "\ud800\u0000", "type": "\udfff"}, %s]}'
    text = some % json.dumps(KUMA["monitorList"][2])
    status, page = await sent(api, {"tool": "kuma"}, {"file": text})
    assert (status, "1 imported, 1 skipped" in page) == (200, True)
    status, page = await sent(api, {"tool": "blackbox"}, {"file": "- targets: 5"})
    assert (status, "has a structure that the importer does not know" in page) == (400, True)
