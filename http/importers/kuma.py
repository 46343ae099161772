"""Import of Uptime Kuma: a backup of version 1 (JSON) or the database of version 2 (SQLite).

Its retries are consecutive failures, so they become a failure threshold. A group is up while all
its members are up, so it becomes a composite.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ...probes.check.monitor_spec import is_credential_header
from ...storage.bundles.rules.bundle_diff import in_order
from .import_result import ImportResult, quoted, status_condition
from .json_file import read_json
from .kuma_file import read_kuma_file
from .source import Source

# Values that Kuma writes for monitors of all types.
_DEFAULTS: Final[dict[str, Any]] = {
    "method": "GET",
    "maxredirects": 10,
    "accepted_statuscodes": ["200-299"],
    "dns_resolve_type": "A",
    "dns_resolve_server": "1.1.1.1",
    "dnsResolveType": "A",
    "dnsResolveServer": "1.1.1.1",
    "httpBodyEncoding": "json",
    "http_body_encoding": "json",
    "jsonPath": "$",
    "json_path": "$",
    "jsonPathOperator": "==",
    "json_path_operator": "==",
    "packetSize": 56,
    "packet_size": 56,
    "mqttCheckType": "keyword",
    "mqtt_check_type": "keyword",
    "kafkaProducerSaslOptions": {"mechanism": "None"},
    "kafka_producer_sasl_options": '{"mechanism":"None"}',
    "gamedigGivenPortOnly": True,
    "gamedig_given_port_only": True,
    "conditions": "[]",
}
# Fields that Kuma computes, records or needs for its own screens.
_STATE: Final = (
    "id",
    "parent",
    "user_id",
    "weight",
    "pathName",
    "path",
    "childrenIDs",
    "forceInactive",
    "includeSensitiveData",
    "maintenance",
    "screenshot",
    "created_date",
    "notificationIDList",
)
_OPERATORS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "contains"})
# Operators of Kuma's conditions on numbers.
_NUMERIC: Final = {
    "num_equals": "==",
    "num_not_equals": "!=",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
}
# Records that [RESULT] shows as Kuma does.
_PLAIN_RECORDS: Final = frozenset({"A", "AAAA", "CNAME", "NS", "PTR"})
_BODY_TYPES: Final = {
    "json": "application/json",
    "xml": "text/xml; charset=utf-8",
    "form": "application/x-www-form-urlencoded",
}
_SMTP_ENCRYPTION: Final = {"secure": "tls", "starttls": "starttls"}
# Uptime Kuma notifies first at the highest of its thresholds, 21 days by default.
CERTIFICATE_DAYS: Final = 21
_HTTP: Final = frozenset({"http", "keyword", "json-query"})
_DATABASES: Final = {"postgres": "postgres", "mysql": "mysql", "redis": "redis"}
_PORTS: Final = {"postgres": 5432, "mysql": 3306, "redis": 6379}


def read_kuma(path: Path) -> ImportResult:
    """Returns the import of a file. Raises: CannotImport."""
    document = Source(read_kuma_file(path))
    listed = document["monitorList"]
    monitors = [
        Source(dict(one), _DEFAULTS, is_generated=True)
        for one in (listed.values() if isinstance(listed, Mapping) else listed)
    ]
    found = ImportResult()
    uids: dict[str, str] = {}

    def take(one: Source) -> None:
        name = str(one.get("name") or "unnamed")
        uid = found.name(name)
        if _take(found, uid, name, one):
            uids[str(one.get("id"))] = uid

    groups = [one for one in monitors if one.get("type") == "group"]
    found.each((one for one in monitors if one.get("type") != "group"), take)
    _group(found, uids, groups, monitors)
    found.not_used("", document, ("monitorList",))
    found.general.append("notifications, status pages and proxies are not carried over")
    found.general.append(f"of each monitor, {', '.join(_STATE)} are not carried over")
    return found


def _take(found: ImportResult, uid: str, name: str, one: Source) -> bool:
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
        entry |= _dns(one, lost)
    elif kind == "websocket-upgrade":
        entry |= _websocket(one, lost)
    elif kind == "rabbitmq":
        entry |= _rabbitmq(uid, one, lost)
    elif kind == "tls":
        entry |= {"type": "tls", "target": f"{one.get('hostname')}:{one.get('port') or 443}"}
    elif kind == "smtp":
        encryption = _SMTP_ENCRYPTION.get(str(one.get("smtpSecurity")), "none")
        entry |= {
            "type": "smtp",
            "target": f"{one.get('hostname')}:{one.get('port') or 25}",
            "config": {"encryption": encryption},
        }
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
    return found.add(uid, entry, lost, one, _STATE)


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
        operator = str(one.get("jsonPathOperator") or "==")
        value = str(one.get("expectedValue") or "")
        expected = value if operator[0] in "<>" and _is_number(value) else quoted(value)
        if operator in _OPERATORS:
            conditions.append(f"[BODY]{'.' if path else ''}{path} {operator} {expected}")
        else:
            lost.append(f"jsonPathOperator {operator}")
    method = str(one.get("method") or "GET").upper()
    redirects = one.get("maxredirects", 10)
    headers = _headers(one, lost)
    if one.get("body") and not any(name.lower() == "content-type" for name in headers):
        encoding = _BODY_TYPES.get(str(one.get("httpBodyEncoding")))
        headers |= {"Content-Type": encoding} if encoding else {}
    config = {
        "headers": headers,
        "body": one.get("body"),
        "tls_skip_verify": bool(one.get("ignoreTls")) or None,
        "follow_redirects": False if redirects == 0 else None,
        **_credentials(uid, one, lost),
    }
    return {
        "type": "http",
        "warn_certificate_days": CERTIFICATE_DAYS if one.get("expiryNotification") else 0,
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
        given = read_json(text) if isinstance(text, str) else dict(text)
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


def _dns(one: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    server = str(one.get("dns_resolve_server") or "").split(",")[0].strip()
    port = int(one.get("port") or 53)
    config = {"record_type": str(one.get("dns_resolve_type") or "A")}
    if server:
        config["resolver"] = server if port == 53 else f"{server}:{port}"
    conditions = _conditions(one, "record", lost, config["record_type"])
    if len(conditions) > 1:
        lost.append("that one record meets all of its conditions: each can be met by another")
    return {
        "type": "dns",
        "target": str(one.get("hostname")),
        "conditions": conditions,
        "config": config,
    }


def _conditions(
    one: Mapping[str, Any], variable: str, lost: list[str], record: str | None = None
) -> list[str]:
    """Returns conditions on [RESULT]. `record` is the type of DNS records; any record can match."""
    text = one.get("conditions")
    given = read_json(text) if isinstance(text, str) and text else text or []
    found: list[str] = []
    flat = list(_flat(given))
    # Leadline joins conditions by "and" only. The first of a group has no predecessor to join.
    if any(joined == "or" for joined, _ in flat):
        lost.append("its conditions, some of which are joined by or")
        return []
    for _, condition in flat:
        operator, value = str(condition.get("operator")), str(condition.get("value"))
        is_known = condition.get("variable") == variable
        turned = _condition(operator, value, record) if is_known else None
        if turned is None:
            lost.append(f"condition {condition.get('variable')} {operator} {value}")
        else:
            found.append(f"[RESULT] {turned}")
    return found


def _flat(given: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields (operator that joins it to the previous one, condition), also of groups."""
    for at, one in enumerate(given):
        joined = str(one.get("andOr")) if at else ""
        if one.get("type") == "group":
            members = list(_flat(one.get("children") or []))
            if members:
                yield joined, members[0][1]
            yield from members[1:]
        else:
            yield joined, one


def _condition(operator: str, value: str, record: str | None) -> str | None:
    """Returns operator and value with the same meaning, None if Leadline has no such operator."""
    if operator == "contains":
        return f"contains {quoted(value)}"
    if operator in _NUMERIC and record is None and _is_number(value):
        return f"{_NUMERIC[operator]} {value}"
    if record is None and operator in ("equals", "not_equals"):
        return f"{'==' if operator == 'equals' else '!='} {quoted(value)}"
    if record is not None and record not in _PLAIN_RECORDS:
        return None
    start, end = {
        "equals": ("^", "$"),
        "starts_with": ("^", ""),
        "ends_with": ("", "$"),
    }.get(operator, ("", ""))
    if not start and not end:
        return None
    flags = "" if record is None else "(?m)"
    return f"matches {quoted(f'{flags}{start}{re.escape(value)}{end}')}"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


def _websocket(one: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    config: dict[str, Any] = {"headers": _headers(one, lost)}
    subprotocols = str(one.get("wsSubprotocol") or "").split(",")
    config["subprotocol"] = subprotocols[0].strip()
    if len(subprotocols) > 1:
        lost.append("its wsSubprotocol after the first")
    return {
        "type": "websocket",
        "target": str(one.get("url")),
        "config": {key: value for key, value in config.items() if value},
    }


def _rabbitmq(uid: str, one: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    """Returns the settings for the first node. Kuma tries all nodes until one is healthy."""
    text = one.get("rabbitmqNodes")
    nodes = read_json(text) if isinstance(text, str) else list(text or [])
    url = urlsplit(str(nodes[0]))
    has_tls = url.scheme == "https"
    if len(nodes) > 1:
        lost.append("its rabbitmqNodes after the first")
    lost.append("the check of alarms: a login to the management API is up")
    config: dict[str, Any] = {"mode": "management", "username": one.get("rabbitmqUsername")}
    if has_tls:
        config["tls"] = True
    if one.get("rabbitmqPassword"):
        config["password_ref"] = secret = f"{uid[:54]}-password"
        lost.append(f"its password: make it the secret {secret} of the project before applying")
    return {
        "type": "rabbitmq",
        "target": f"{url.hostname}:{url.port or (443 if has_tls else 80)}",
        "config": {key: value for key, value in config.items() if value},
    }


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
        "conditions": [] if kind == "redis" else _conditions(one, "result", lost),
        "config": {key: value for key, value in config.items() if value not in (None, "")},
    }


def _group(
    found: ImportResult,
    uids: Mapping[str, str],
    groups: list[Source],
    monitors: list[Source],
) -> None:
    """Adds a composite for each group, inner groups first."""
    known = dict(uids)
    by_id = {str(one.get("id")): one for one in groups}
    inside: dict[str, list[Source]] = {key: [] for key in by_id}
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
        if found.add(uid, entry, lost, one, _STATE):
            known[key] = uid

    found.each(order, take)
