"""The importers convert the configuration of other tools to a valid bundle and report what is
lost."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.daemon.cli import main
from leadline.http.importers import CannotImport, ImportResult, read_of
from leadline.storage.bundles.rules.bundle import read_bundle
from leadline.storage.bundles.rules.bundle_yaml import read_text


def read(kind: str, tmp_path: Path, document: Any, modules: Any = None) -> ImportResult:
    file = tmp_path / "file"
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    if modules is None:
        return read_of(kind, file)
    beside = tmp_path / "modules.yml"
    beside.write_text(yaml.safe_dump(modules))
    return read_of(kind, file, beside)


def lost(found: ImportResult) -> dict[str, tuple[bool, tuple[str, ...]]]:
    return {note.name: (note.is_kept, note.lost) for note in found.notes}


KUMA_WEB: dict[str, Any] = {
    "id": 1,
    "name": "Shop front",
    "type": "http",
    "url": "https://shop.example.org/",
    "method": "GET",
    "interval": 30,
    "timeout": 24,
    "maxretries": 2,
    "retryInterval": 15,
    "resendInterval": 10,
    "active": True,
    "accepted_statuscodes": ["200-299", "301"],
    "tags": [{"name": "prod", "value": ""}, {"name": "team", "value": "web"}],
    "headers": '{"Accept": "text/html", "Authorization": "Bearer hunter2"}',
    "ignoreTls": True,
    "maxredirects": 0,
    "notificationIDList": {"1": True},
    "parent": 9,
}


def kuma(*monitors: dict[str, Any]) -> dict[str, Any]:
    return {"version": "1.23.16", "notificationList": [], "monitorList": list(monitors)}


def test_kuma_http(tmp_path: Path) -> None:
    found = read("kuma", tmp_path, kuma(KUMA_WEB))
    assert found.monitors == {
        "shop-front": {
            "name": "Shop front",
            "type": "http",
            "target": "https://shop.example.org/",
            "interval_seconds": 30,
            "timeout_seconds": 24,
            "failure_threshold": 3,
            "confirm_interval_seconds": 15,
            "renotify_seconds": 300,
            "tags": ["prod", "team:web"],
            "conditions": ["[STATUS] matches ^(2[0-9]{2}|301)$"],
            "config": {
                "headers": {"Accept": "text/html", "Authorization": ""},
                "tls_skip_verify": True,
                "follow_redirects": False,
            },
        }
    }
    kept, what = lost(found)["Shop front"]
    assert kept
    assert any("Authorization" in one for one in what)
    assert "hunter2" not in str(found)


def test_kuma_kinds(tmp_path: Path) -> None:
    found = read(
        "kuma",
        tmp_path,
        kuma(
            {"id": 2, "name": "Words", "type": "keyword", "url": "http://x/", "keyword": 'a "b"'},
            {"id": 3, "name": "Db", "type": "port", "hostname": "db", "port": 5432},
            {"id": 4, "name": "Gate", "type": "ping", "hostname": "10.0.0.1", "timeout": 48},
            {
                "id": 5,
                "name": "Name",
                "type": "dns",
                "hostname": "example.org",
                "dns_resolve_server": "1.1.1.1",
                "dns_resolve_type": "MX",
                "port": 53,
            },
            {"id": 6, "name": "Job", "type": "push", "interval": 3600, "active": False},
            {
                "id": 7,
                "name": "Pg",
                "type": "postgres",
                "databaseConnectionString": "postgres://u:hunter2@db:5433/shop",
                "databaseQuery": "select 1",
            },
            {"id": 8, "name": "Steam", "type": "steam", "hostname": "x", "port": 1},
            {"id": 10, "name": "Reverse", "type": "http", "url": "http://x/", "upsideDown": True},
        ),
    )
    monitors = found.monitors
    assert '[BODY] contains "a \\"b\\""' in monitors["words"]["conditions"]
    assert monitors["db"]["target"] == "db:5432"
    assert (monitors["gate"]["type"], monitors["gate"]["timeout_seconds"]) == ("icmp", 10)
    assert monitors["name"]["config"] == {"record_type": "MX", "resolver": "1.1.1.1"}
    assert (monitors["job"]["type"], monitors["job"]["enabled"]) == ("push", False)
    assert monitors["pg"]["config"] == {
        "username": "u",
        "query": "select 1",
        "database": "shop",
        "password_ref": "pg-password",
    }
    assert lost(found)["Steam"] == (False, ("is of type steam, which is not checked here",))
    assert lost(found)["Reverse"][0] is False
    assert "hunter2" not in str(found)


def test_kuma_groups_are_composites(tmp_path: Path) -> None:
    found = read(
        "kuma",
        tmp_path,
        kuma(
            {"id": 11, "name": "All", "type": "group", "parent": None},
            {"id": 9, "name": "Web", "type": "group", "parent": 11},
            {"id": 12, "name": "Empty", "type": "group", "parent": 11},
            KUMA_WEB,
        ),
    )
    assert found.monitors["web"]["config"] == {"children": ["shop-front"], "mode": "all"}
    assert found.monitors["all"]["config"] == {"children": ["web"], "mode": "all"}
    assert lost(found)["All"] == (True, ("Empty, which is in it",))
    assert lost(found)["Empty"][0] is False


def test_kumas_database_is_read_as_its_backup_is(tmp_path: Path) -> None:
    path = tmp_path / "kuma.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            """
            create table monitor (id integer primary key, name text, active boolean, interval
              integer, url text, type text, hostname text, port integer, keyword text, maxretries
              integer, ignore_tls boolean, upside_down boolean, maxredirects integer,
              accepted_statuscodes_json text, retry_interval integer, method text, body text,
              headers text, basic_auth_user text, basic_auth_pass text, resend_interval integer,
              parent integer, timeout double, description text, invert_keyword boolean,
              auth_method text);
            create table tag (id integer primary key, name text, color text);
            create table monitor_tag (id integer primary key, monitor_id integer, tag_id integer,
              value text);
            insert into monitor (id, name, active, interval, url, type, maxretries, ignore_tls,
              upside_down, maxredirects, accepted_statuscodes_json, retry_interval, method,
              basic_auth_user, basic_auth_pass, resend_interval, timeout, description, auth_method)
            values (1, 'Till', 1, 60, 'https://till.example.org/', 'http', 1, 0, 0, 10,
              '["200-299"]', 20, 'HEAD', 'clerk', 'hunter2', 0, 48, 'The till', 'basic');
            insert into tag values (1, 'shop', '#fff');
            insert into monitor_tag values (1, 1, 1, '');
            """
        )
    found = read_of("kuma", path)
    till = found.monitors["till"]
    assert (till["failure_threshold"], till["confirm_interval_seconds"]) == (2, 20)
    assert (till["tags"], till["description"]) == (["shop"], "The till")
    assert till["conditions"] == ["[STATUS] >= 200", "[STATUS] <= 299"]
    assert till["config"] == {
        "auth_mode": "basic",
        "username": "clerk",
        "password_ref": "till-password",
    }
    assert "hunter2" not in str(found)


GATUS = """
endpoints:
  - name: front
    group: shop
    url: https://shop.example.org/health
    interval: 5m
    client: {insecure: true, timeout: 3s, ignore-redirect: true}
    headers: {Authorization: Bearer hunter2}
    alerts: [{type: slack, failure-threshold: 5}]
    conditions:
      - "[STATUS] == any(200, 204)"
      - "[BODY].status == UP"
      - "[BODY].name == pat(*shop*)"
      - "[RESPONSE_TIME] < 300"
      - "[CERTIFICATE_EXPIRATION] > 48h"
      - "len([BODY].data) > 0"
      - "[DOMAIN_EXPIRATION] > 720h"
  - name: names
    url: 8.8.8.8
    dns: {query-name: example.org., query-type: A}
    conditions: ["[DNS_RCODE] == NOERROR", "[BODY] == 93.184.216.34"]
  - {name: ping, url: "icmp://10.0.0.1", conditions: ["[CONNECTED] == true"]}
  - name: mail
    url: starttls://mail.example.org:587
    conditions: ["[CERTIFICATE_EXPIRATION] > 48h"]
  - {name: port, url: "tcp://db:5432", enabled: false}
  - {name: sctp, url: "sctp://x:1"}
external-endpoints:
  - {name: nightly, group: jobs, token: hunter2, heartbeat: {interval: 24h}}
"""


def test_gatus(tmp_path: Path) -> None:
    found = read("gatus", tmp_path, GATUS)
    front = found.monitors["shop-front"]
    assert front["conditions"] == [
        "[STATUS] matches ^(200|204)$",
        "[BODY].status == UP",
        "[BODY].name matches (?s)^.*shop.*$",
        "[RESPONSE_TIME] < 300",
        "[CERT_EXPIRY] > 48h",
    ]
    assert (front["interval_seconds"], front["timeout_seconds"]) == (300, 3)
    assert (front["failure_threshold"], front["recovery_threshold"]) == (5, 2)
    assert front["config"]["tls_skip_verify"] is True
    kept, what = lost(found)["front"]
    assert kept
    assert len(what) == 3
    assert found.monitors["names"]["conditions"] == [
        "[STATUS] == 0",
        "[RESULT] == 93.184.216.34",
    ]
    assert found.monitors["mail"]["config"] == {"starttls": "smtp"}
    assert found.monitors["port"]["enabled"] is False
    assert found.monitors["jobs-nightly"]["interval_seconds"] == 86_400
    assert lost(found)["sctp"][0] is False
    assert "hunter2" not in str(found)


def test_healthchecks(tmp_path: Path) -> None:
    check = {
        "name": "Backup",
        "slug": "backup",
        "tags": "db prod",
        "desc": "Every\nnight",
        "grace": 600,
    }
    found = read(
        "healthchecks",
        tmp_path,
        {
            "checks": [
                {**check, "timeout": 86_400, "status": "up"},
                {**check, "name": "Quarters", "schedule": "*/15 * * * *", "tz": "UTC"},
                {**check, "name": "Odd", "schedule": "*/7 * * * *", "tz": "Europe/Riga"},
                {**check, "name": "Calendar", "schedule": "Mon 10:00", "tz": "UTC"},
                {**check, "name": "Weekly", "timeout": 604_800},
                {**check, "name": "Paused", "timeout": 60, "status": "paused", "grace": 200_000},
                {
                    **check,
                    "name": "Words",
                    "filter_body": True,
                    "success_kw": "done, ok ,",
                    "failure_kw": "ERROR",
                    "filter_default_fail": True,
                },
                {
                    **check,
                    "name": "Ignoring",
                    "filter_body": True,
                    "success_kw": "done",
                    "start_kw": "begin",
                },
                {**check, "name": "Subject", "filter_subject": True, "success_kw": "done"},
            ]
        },
    )
    assert found.monitors["backup"] == {
        "name": "Backup",
        "type": "push",
        "description": "Every night",
        "tags": ["db", "prod"],
        "interval_seconds": 86_400,
        "grace_seconds": 600,
    }
    assert found.monitors["quarters"]["schedule"] == "*/15 * * * *"
    assert "interval_seconds" not in found.monitors["quarters"]
    assert found.monitors["odd"]["timezone"] == "Europe/Riga"
    words = {"success_keywords": "done\nok", "failure_keywords": "ERROR"}
    assert found.monitors["words"]["config"] == words
    assert found.monitors["ignoring"]["config"] == {"success_keywords": "done"}
    assert len([what for what in lost(found)["Ignoring"][1] if "keyword" in what]) == 2
    assert "config" not in found.monitors["subject"]
    assert found.monitors["paused"]["grace_seconds"] == 86_400
    assert found.monitors["paused"]["enabled"] is False
    assert {name for name, (kept, _) in lost(found).items() if not kept} == {"Calendar", "Weekly"}


PROMETHEUS = """
global: {scrape_interval: 30s}
scrape_configs:
  - job_name: blackbox
    metrics_path: /probe
    params: {module: [http_2xx]}
    static_configs:
      - targets: [https://shop.example.org, http://mill.example.org]
        labels: {team: web}
  - job_name: ports
    metrics_path: /probe
    scrape_interval: 2m
    params: {module: [strict]}
    static_configs: [{targets: [api.example.org]}]
  - job_name: node
    static_configs: [{targets: ["localhost:9100"]}]
"""
MODULES = {
    "modules": {
        "strict": {
            "prober": "http",
            "timeout": "5s",
            "http": {
                "method": "POST",
                "valid_status_codes": [200, 201],
                "fail_if_body_not_matches_regexp": ["ok"],
                "fail_if_body_matches_regexp": ["error"],
                "fail_if_ssl": True,
                "basic_auth": {"username": "u", "password": "hunter2"},
                "tls_config": {"insecure_skip_verify": True},
            },
        }
    }
}


def test_blackbox(tmp_path: Path) -> None:
    found = read("blackbox", tmp_path, PROMETHEUS, MODULES)
    assert set(found.monitors) == {"shop-example-org", "mill-example-org", "api-example-org"}
    shop = found.monitors["shop-example-org"]
    assert (shop["interval_seconds"], shop["tags"]) == (30, ["team:web"])
    api = found.monitors["api-example-org"]
    assert api["conditions"] == ["[STATUS] matches ^(200|201)$", "[BODY] matches ok"]
    assert (api["method"], api["timeout_seconds"], api["interval_seconds"]) == ("POST", 5, 120)
    kept, what = lost(found)["api.example.org"]
    assert kept
    assert "that the body must not match error" in what
    assert "monitor api.example.org: http.fail_if_ssl is not carried over" in found.unused
    assert "hunter2" not in str(found)


def test_a_file_of_targets_and_an_unknown_module(tmp_path: Path) -> None:
    targets = [
        {"targets": ["db:5432"], "labels": {"module": "tcp_connect"}},
        {"targets": ["x"], "labels": {"__param_module": "own"}},
    ]
    found = read("blackbox", tmp_path, yaml.safe_dump(targets))
    assert found.monitors["db-5432"]["type"] == "tcp"
    assert "give --modules" in lost(found)["x"][1][0]


@pytest.mark.parametrize("kind", ["kuma", "gatus", "healthchecks", "blackbox"])
@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "x: [", "\x00", '{"a": 1}', "[1]"])
def test_a_file_of_another_tool_is_refused(tmp_path: Path, kind: str, text: str) -> None:
    try:
        found = read(kind, tmp_path, text)
    except CannotImport as error:
        assert str(error)  # noqa: PT017 - either is right
    else:
        assert not found.monitors


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
KEYS = st.sampled_from([*KUMA_WEB, "hostname", "port", "keyword", "timeout", "schedule", "grace"])
KINDS = st.sampled_from(["http", "keyword", "port", "ping", "dns", "push", "postgres", "group"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(KEYS, JSON), max_size=4), KINDS)
def test_the_imported_part_is_a_valid_bundle_for_any_input(
    tmp_path: Path, monitors: list[dict[str, Any]], kind: str
) -> None:
    for n, one in enumerate(monitors):
        one |= {"id": n, "type": kind}
    for found in (
        read("kuma", tmp_path, kuma(*monitors)),
        read("healthchecks", tmp_path, {"checks": monitors}),
    ):
        head = {"format": 1, "organization": "acme", "project": "shop"}
        read_bundle({**head, "monitors": found.monitors})


def test_the_command_prints_a_bundle_and_a_report(tmp_path: Path) -> None:
    file = tmp_path / "gatus.yaml"
    file.write_text(GATUS)
    where = ["--organization", "acme", "--project", "shop"]
    result = CliRunner().invoke(main, ["bundle", "import", "gatus", str(file), *where])
    assert result.exit_code == 0, result.output
    bundle = read_bundle(read_text(result.stdout).document)
    assert (bundle.organization, len(bundle.monitors)) == ("acme", 6)
    assert "- sctp: skipped: asks sctp, which is not checked here" in result.stderr
    assert "6 imported, 1 skipped" in result.stderr
    wrong = CliRunner().invoke(main, ["bundle", "import", "kuma", str(file), *where])
    assert wrong.exit_code == 1
    assert "is no backup of Uptime Kuma" in wrong.stderr
