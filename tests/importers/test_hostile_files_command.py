"""Files that no tool wrote: they are refused or reported, within bounds of time and memory."""

import json
from pathlib import Path
from typing import Any

import pytest

from leadline.http.importers import CannotImport, ImportResult
from leadline.http.importers.import_result import ENTRIES_MOST, LOSSES_MOST, TEXT_LONGEST
from leadline.http.importers.uploaded_file import read_upload
from tests.importers.test_import_screen import TAGS, database

ENDLESS = "with recursive n(id) as (select 1 union all select id + 1 from n) select id from n"
COLUMNS = "create table monitor (id, name, type, hostname, port, interval, active)"


def numbers(most: int) -> str:
    return (
        f"with recursive n(i) as (select 1 union all select i + 1 from n where i < {most}) select"
    )


def kuma(*monitors: dict[str, Any]) -> bytes:
    return json.dumps({"monitorList": monitors}).encode()


@pytest.mark.parametrize("kind", ["gatus", "blackbox"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        # Base 60: quadratic, and of many digits no float.
        (f"a: 1{':1' * 100_000}", "a number of more than 40 characters"),
        (f"a: 1{':1' * 3_000}.5", "a number of more than 40 characters"),
        # Without a limit, no text could be made of it.
        (f"a: 0x{'f' * 6_000}", "a number of more than 40 characters"),
        (f"a: !!int '{'1:' * 6_000}1'", "a number of more than 40 characters"),
        (f"a: [{'[],' * 200_000}]", "more than 200000 values"),
        (
            f"a: &a '{'y' * 1_000_000}'\nb: [{'*a,' * 20}]",
            "more than 16777216 characters with all aliases expanded",
        ),
    ],
)
def test_yaml_that_becomes_larger_is_refused(kind: str, text: str, said: str) -> None:
    with pytest.raises(CannotImport, match=said):
        read_upload(kind, text.encode())


@pytest.mark.parametrize("kind", ["kuma", "healthchecks"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[" * 65 + "]" * 65, "nested deeper than 64"),
        ("[" + "{}," * 500_000 + "{}]", "more than 500000 values"),
        ("[" * 100_000, "nested deeper than 64"),
        ("{", "it is no JSON"),
    ],
)
def test_json_without_bounds_is_refused(kind: str, value: str, said: str) -> None:
    with pytest.raises(CannotImport, match=said):
        read_upload(kind, f'{{"monitorList": {value}, "checks": []}}'.encode())


@pytest.mark.parametrize(
    "statements",
    [
        # The names of SQLite have no case.
        (f"create view MONITOR as {ENDLESS}", *TAGS),
        ("create virtual table MONITOR using fts5(id)", *TAGS),
        ("create table monitor (id, name as (hex(zeroblob(400000))))", *TAGS),
        ("create table monitor (id, name as (hex(zeroblob(400000))) stored)", *TAGS),
        (COLUMNS, TAGS[0], "create table monitor_tag (monitor_id, tag_id, value as (1))"),
        # The table of names says another one than its own statement.
        (
            COLUMNS,
            *TAGS,
            f"create view other as {ENDLESS}",
            "pragma writable_schema = on",
            "delete from sqlite_master where name = 'monitor'",
            "update sqlite_master set type = 'table',"
            " sql = replace(sql, 'VIEW other', 'VIEW monitor') where name = 'other'",
        ),
    ],
)
def test_a_database_that_computes_its_rows_is_refused(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    with pytest.raises(CannotImport, match="is no database of Uptime Kuma"):
        read_upload("kuma", database(tmp_path, *statements))


@pytest.mark.parametrize(
    "statements",
    [
        # Each monitor of these would have a copy of the long name.
        (
            f"insert into tag values (1, '{'x' * 900_000}')",
            f"insert into monitor_tag {numbers(200_000)} i, 1, 1 from n",
        ),
        (f"insert into monitor (id) {numbers(80_000)} i from n",),
    ],
)
def test_a_database_with_too_many_values_is_refused(
    tmp_path: Path, statements: tuple[str, ...]
) -> None:
    with pytest.raises(CannotImport, match="more than 500000 values or 16777216 characters"):
        read_upload("kuma", database(tmp_path, COLUMNS, *TAGS, *statements))


def test_tags_of_a_database_belong_to_their_monitors(tmp_path: Path) -> None:
    made = database(
        tmp_path,
        COLUMNS,
        *TAGS,
        "insert into monitor values (1, 'Db', 'port', 'db', 5432, 60, 1)",
        "insert into monitor values (2, 'Web', 'port', 'web', 443, 60, 1)",
        f"insert into tag values (1, 'env'), (2, 'core'), (3, '{'x' * 900}')",
        "insert into monitor_tag values (1, 1, 'prod'), (1, 2, ''), (1, 9, ''), (2, 2, null)",
    )
    found = read_upload("kuma", made).monitors
    assert found["db"]["tags"] == ["env:prod", "core"]
    assert found["web"]["tags"] == ["core"]


def test_a_column_without_json_loses_only_itself(tmp_path: Path) -> None:
    made = database(
        tmp_path,
        "create table monitor (id, name, type, url, accepted_statuscodes_json, interval, active)",
        *TAGS,
        "insert into monitor values (1, 'Web', 'http', 'https://w.example.org', '{oops', 60, 1)",
    )
    found = read_upload("kuma", made)
    assert set(found.monitors) == {"web"}
    assert "accepted status codes cannot be read" in str(found.notes)


def test_entries_are_counted() -> None:
    some = [{"name": "Same", "timeout": 60}] * (ENTRIES_MOST + 1)
    with pytest.raises(CannotImport, match=f"more than {ENTRIES_MOST} entries: divide it"):
        read_upload("healthchecks", json.dumps({"checks": some}).encode())
    targets = f"- targets: [{'a,' * (ENTRIES_MOST + 1)}]"
    with pytest.raises(CannotImport, match=f"more than {ENTRIES_MOST} entries: divide it"):
        read_upload("blackbox", targets.encode())


def test_entries_of_one_name_have_uids_of_their_own() -> None:
    some = [{"name": name, "timeout": 60} for name in ("a", "a-2", "a", "a", "a-2", "a")]
    found = read_upload("healthchecks", json.dumps({"checks": some}).encode())
    assert list(found.monitors) == ["a", "a-2", "a-3", "a-4", "a-2-2", "a-5"]


def test_what_all_targets_share_is_small() -> None:
    labels = ", ".join(f"l{n}: x" for n in range(65))
    with pytest.raises(CannotImport, match="a group with more than 64 labels"):
        read_upload("blackbox", f"- targets: [a]\n  labels: {{{labels}}}".encode())
    modules = f"modules: {{own: {{prober: http, http: {{body: {'x' * 40_000}}}}}}}"
    with pytest.raises(CannotImport, match="module own is larger than 32768 characters"):
        read_upload("blackbox", b"- targets: [a]", modules.encode())


def test_status_codes_are_few() -> None:
    codes = [f"100-{last}" for last in range(200, 400)]
    web = {"name": "Web", "type": "http", "url": "http://w", "accepted_statuscodes": codes}
    found = read_upload("kuma", kuma(web))
    assert "accepted status codes cannot be read" in str(found.notes)
    assert found.monitors["web"]["conditions"] == ["[STATUS] >= 200", "[STATUS] <= 299"]


def report(found: ImportResult) -> str:
    parts = [text for note in found.notes for text in (note.name, *note.lost)]
    return "\n".join([*parts, *found.unused, *found.general])


def test_the_report_can_be_printed() -> None:
    odd = "\ud800\x00\x1b[2J\u202egnp\u2066"
    web = {"type": "http", "url": "http://w", "interval": 60}
    found = read_upload(
        "kuma",
        kuma(
            {"name": odd, "type": "steam"},
            {"name": "Web", **web, odd: 1, "keyword": odd},
            {"name": "x" * 10_000, "type": "y" * 10_000},
            {"name": "\ud800", **web},
            {"name": "Api", **web, "headers": '{"X-A": "\\ud800"}'},
        ),
    )
    text = report(found)
    assert text.encode()
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    assert max(len(line) for line in text.split("\n")) <= TEXT_LONGEST + 1
    assert set(found.monitors) == {"web"}
    lost = [{"value": "x", "operator": "?", "variable": "v"}] * 90
    dns = {"name": "Dns", "type": "dns", "hostname": "a.example", "conditions": lost}
    (note,) = (one for one in read_upload("kuma", kuma(dns)).notes if one.name == "Dns")
    assert (len(note.lost), note.lost[-1]) == (LOSSES_MOST + 1, f"{90 - LOSSES_MOST} more")


@pytest.mark.parametrize(
    "text",
    [
        "- targets: 5",
        "- targets: [a]\n  labels: [1, 2]",
        "scrape_configs: 5",
        "scrape_configs: [{metrics_path: /probe, static_configs: 7}]",
        "scrape_configs: [{metrics_path: /probe, params: {module: {a: 1}},"
        " static_configs: [{targets: [a]}]}]",
        "global: 7\nscrape_configs: [{metrics_path: /probe, static_configs: [{targets: [a]}]}]",
    ],
)
def test_a_form_that_the_tool_does_not_write_is_no_internal_error(text: str) -> None:
    with pytest.raises(CannotImport, match="has a structure that the importer does not know"):
        read_upload("blackbox", text.encode())
