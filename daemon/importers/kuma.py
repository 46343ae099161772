"""Uptime Kuma: the backup that version 1 writes (JSON), and the database of version 2 (SQLite).

Its retries are runs that must fail in a row, so they become a failure threshold. A group is up
while all in it are, which is a composite.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ...probes.check.monitor_spec import is_credential_header
from ...storage.bundles.rules.bundle_diff import in_order
from .import_result import CannotImport, ImportResult, quoted, status_condition

_SQLITE: Final = b"SQLite format 3\x00"
_CAMEL: Final = {
    "retry_interval": "retryInterval",
    "resend_interval": "resendInterval",
    "ignore_tls": "ignoreTls",
    "upside_down": "upsideDown",
    "invert_keyword": "invertKeyword",
    "json_path": "jsonPath",
    "expected_value": "expectedValue",
    "auth_method": "authMethod",
    "database_connection_string": "databaseConnectionString",
    "database_query": "databaseQuery",
    "expiry_notification": "expiryNotification",
}
_HTTP: Final = frozenset({"http", "keyword", "json-query"})
_DATABASES: Final = {"postgres": "postgres", "mysql": "mysql", "redis": "redis"}
_PORTS: Final = {"postgres": 5432, "mysql": 3306, "redis": 6379}


def read_kuma(path: Path) -> ImportResult:
    """Raises CannotImport."""
    with path.open("rb") as file:
        is_database = file.read(len(_SQLITE)) == _SQLITE
    monitors = _of_database(path) if is_database else _of_backup(path)
    found = ImportResult()
    uids: dict[str, str] = {}

    def take(one: Mapping[str, Any]) -> None:
        name = str(one.get("name") or "unnamed")
        uid = found.name(name)
        if _take(found, uid, name, one):
            uids[str(one.get("id"))] = uid

    groups = [one for one in monitors if one.get("type") == "group"]
    found.each((one for one in monitors if one.get("type") != "group"), take)
    _group(found, uids, groups, monitors)
    found.general.append("notifications, status pages and proxies are not carried over")
    return found


def _of_backup(path: Path) -> list[dict[str, Any]]:
    try:
        document = json.loads(path.read_bytes())
        monitors = document["monitorList"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CannotImport("is no backup of Uptime Kuma: it has no monitorList") from error
    listed = list(monitors.values()) if isinstance(monitors, dict) else monitors
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise CannotImport("is no backup of Uptime Kuma: its monitorList is no list")
    return listed


def _of_database(path: Path) -> list[dict[str, Any]]:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            rows = [dict(row) for row in database.execute("select * from monitor order by id")]
            tags = database.execute(
                "select m.monitor_id, t.name, m.value from monitor_tag m "
                "join tag t on t.id = m.tag_id"
            ).fetchall()
    except sqlite3.Error as error:
        raise CannotImport(f"is no database of Uptime Kuma: {error}") from error
    for row in rows:
        for snake, camel in _CAMEL.items():
            row[camel] = row.get(snake)
        codes = row.get("accepted_statuscodes_json")
        row["accepted_statuscodes"] = json.loads(codes) if codes else []
        own = [tag for tag in tags if tag["monitor_id"] == row["id"]]
        row["tags"] = [{"name": tag["name"], "value": tag["value"]} for tag in own]
    return rows


def _take(found: ImportResult, uid: str, name: str, one: Mapping[str, Any]) -> bool:
    kind, lost = str(one.get("type")), list[str]()
    if one.get("upsideDown"):
        found.skip(name, "is up while its target is down, which no monitor here is")
        return False
    entry = {"name": name[:200], **_schedule(one), **_beside(one)}
    if kind in _HTTP:
        entry |= _http(uid, kind, one, lost)
    elif kind == "port":
        entry |= {"type": "tcp", "target": f"{one.get('hostname')}:{one.get('port')}"}
    elif kind == "ping":
        entry |= {"type": "icmp", "target": str(one.get("hostname"))}
        entry["timeout_seconds"] = min(entry["timeout_seconds"], 10)
    elif kind == "dns":
        entry |= _dns(one)
    elif kind == "push":
        entry |= {"type": "push"}
        del entry["timeout_seconds"]
        lost.append("its push URL is another one here")
    elif kind in _DATABASES:
        given = _database(uid, kind, one, lost)
        if given is None:
            found.skip(name, "its connection string cannot be read")
            return False
        entry |= given
    else:
        found.skip(name, f"is of type {kind}, which is not checked here")
        return False
    return found.add(uid, entry, lost)


def _schedule(one: Mapping[str, Any]) -> dict[str, Any]:
    interval = max(int(one.get("interval") or 60), 5)
    timeout = int(float(one.get("timeout") or 0)) or int(interval * 0.8)
    resend = int(one.get("resendInterval") or 0) * interval
    return {
        "interval_seconds": interval,
        "timeout_seconds": max(1, min(timeout, interval, 300)),
        "failure_threshold": min(int(one.get("maxretries") or 0) + 1, 100),
        "confirm_interval_seconds": int(one.get("retryInterval") or 0) or 10,
        "renotify_seconds": min(max(resend, 60), 86_400) if resend else 0,
    }


def _beside(one: Mapping[str, Any]) -> dict[str, Any]:
    tags = []
    for tag in one.get("tags") or []:
        name, value = tag.get("name"), tag.get("value")
        tags.append(f"{name}:{value}" if value else str(name))
    return {
        "enabled": bool(one.get("active", True)),
        "description": str(one.get("description") or "")[:200],
        "tags": list(dict.fromkeys(tags)),
    }


def _http(uid: str, kind: str, one: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    conditions: list[str] = []
    try:
        conditions += status_condition(one.get("accepted_statuscodes") or ["200-299"])
    except ValueError:
        lost.append("its accepted status codes cannot be read: 200 to 299 are taken")
        conditions += status_condition(["200-299"])
    if kind == "keyword" and one.get("keyword"):
        if one.get("invertKeyword"):
            lost.append("that the body must not contain its keyword")
        else:
            conditions.append(f"[BODY] contains {quoted(str(one['keyword']))}")
    if kind == "json-query":
        path = str(one.get("jsonPath") or "").removeprefix("$").removeprefix(".")
        expected = quoted(str(one.get("expectedValue") or ""))
        conditions.append(f"[BODY].{path} == {expected}" if path else f"[BODY] == {expected}")
    method = str(one.get("method") or "GET").upper()
    redirects = one.get("maxredirects", 10)
    config = {
        "headers": _headers(one, lost),
        "body": one.get("body"),
        "tls_skip_verify": bool(one.get("ignoreTls")) or None,
        "follow_redirects": False if redirects == 0 else None,
        **_credentials(uid, one, lost),
    }
    if one.get("expiryNotification"):
        lost.append(
            "the warning of its certificate's end: add [CERT_EXPIRY] > 14d, or a tls monitor"
        )
    return {
        "type": "http",
        "target": str(one.get("url")),
        "method": method,
        "conditions": conditions,
        "config": {key: value for key, value in config.items() if value not in (None, "", {})},
    }


def _headers(one: Mapping[str, Any], lost: list[str]) -> dict[str, str]:
    text = one.get("headers")
    if not text:
        return {}
    try:
        given = json.loads(text) if isinstance(text, str) else dict(text)
        headers = {str(name): str(value) for name, value in given.items()}
    except (ValueError, AttributeError):
        lost.append("its headers cannot be read")
        return {}
    for name in [name for name in headers if is_credential_header(name)]:
        headers[name] = ""
        lost.append(f"the value of its header {name}, which is to be given here by hand")
    return headers


def _credentials(uid: str, one: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    method = one.get("authMethod") or ("basic" if one.get("basic_auth_user") else "")
    if not method:
        return {}
    if method != "basic":
        lost.append(f"its authentication by {method}")
        return {}
    secret = f"{uid[:54]}-password"
    lost.append(f"its password: make it the secret {secret} of the project before applying")
    return {
        "auth_mode": "basic",
        "username": one.get("basic_auth_user"),
        "password_ref": secret,
    }


def _dns(one: Mapping[str, Any]) -> dict[str, Any]:
    server = str(one.get("dns_resolve_server") or "").split(",")[0].strip()
    port = int(one.get("port") or 53)
    config = {"record_type": str(one.get("dns_resolve_type") or "A")}
    if server:
        config["resolver"] = server if port == 53 else f"{server}:{port}"
    return {"type": "dns", "target": str(one.get("hostname")), "config": config}


def _database(
    uid: str, kind: str, one: Mapping[str, Any], lost: list[str]
) -> dict[str, Any] | None:
    try:
        url = urlsplit(str(one.get("databaseConnectionString") or ""))
        host, port = url.hostname, url.port or _PORTS[kind]
    except ValueError:
        return None
    if not host:
        return None
    config: dict[str, Any] = {"username": url.username, "query": one.get("databaseQuery")}
    if kind == "redis":
        del config["query"]
        config["tls"] = url.scheme == "rediss" or None
    else:
        config["database"] = url.path.lstrip("/")
    if url.password:
        config["password_ref"] = secret = f"{uid[:54]}-password"
        lost.append(f"its password: make it the secret {secret} of the project before applying")
    return {
        "type": _DATABASES[kind],
        "target": f"{host}:{port}",
        "config": {key: value for key, value in config.items() if value not in (None, "")},
    }


def _group(
    found: ImportResult,
    uids: Mapping[str, str],
    groups: list[dict[str, Any]],
    monitors: list[dict[str, Any]],
) -> None:
    """Inner groups first, however many lie within each other."""
    known = dict(uids)
    by_id = {str(one.get("id")): one for one in groups}
    inside: dict[str, list[dict[str, Any]]] = {key: [] for key in by_id}
    for one in monitors:
        inside.get(str(one.get("parent")), []).append(one)
    within = {key: [str(one.get("id")) for one in members] for key, members in inside.items()}
    order, circle = in_order(within)
    if circle is not None:
        found.skip(str(by_id[circle].get("name")), "is a group that lies within itself")

    def take(key: str) -> None:
        one, members = by_id[key], inside[key]
        name = str(one.get("name") or "unnamed")
        children = [known[str(m.get("id"))] for m in members if str(m.get("id")) in known]
        lost = [
            f"{m.get('name')}, which is in it" for m in members if str(m.get("id")) not in known
        ]
        if not children:
            found.skip(name, "is a group, and nothing of it was carried over")
            return
        uid = found.name(name)
        config = {"children": children, "mode": "all"}
        entry = {"name": name[:200], "type": "composite", "config": config, **_beside(one)}
        if found.add(uid, entry, lost):
            known[key] = uid

    found.each(order, take)
