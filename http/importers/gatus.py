"""Import of a configuration of Gatus (YAML).

Most of its conditions have the syntax of Leadline. Its functions become operators where Leadline
has an equivalent.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ...probes.check.durations import read_duration
from ...probes.check.monitor_spec import is_credential_header
from .import_result import RCODES, CannotImport, ImportResult, status_condition
from .source import Source
from .yaml_file import BadYaml, read_yaml

_SCHEMES: Final = {
    "http": "http",
    "https": "http",
    "icmp": "icmp",
    "tcp": "tcp",
    "tls": "tls",
    "starttls": "tls",
    "ws": "websocket",
    "wss": "websocket",
    "ssh": "ssh",
}
_PORTS: Final = {"ssh": 22, "starttls": 25, "tls": 443}
_RENAMED: Final = {"[CERTIFICATE_EXPIRATION]": "[CERT_EXPIRY]"}
_ANY: Final = re.compile(r"(\[[A-Z]+\]\S*) == any\(([^()]+)\)")
_PATTERN: Final = re.compile(r"(\[[A-Z]+\]\S*) == pat\((.*)\)")
_HAS: Final = re.compile(r"has\((\[BODY\]\S*)\) == true")
# Defaults of Gatus.
_INTERVAL: Final = 60
_TIMEOUT: Final = 10
_FAILURES: Final = 3
_SUCCESSES: Final = 2


def read_gatus(path: Path) -> ImportResult:
    """Returns the import of a file. Raises: CannotImport."""
    try:
        document = read_yaml(path.read_bytes())
    except BadYaml as error:
        raise CannotImport(str(error)) from error
    if not isinstance(document, Mapping):
        raise CannotImport("is no configuration of Gatus: it has no endpoints")
    document = Source(document)
    endpoints = document.get("endpoints") or document.get("services") or []
    external = document.get("external-endpoints") or []
    suites = document.get("suites") or []
    if not all(isinstance(listed, list) for listed in (endpoints, external, suites)) or not (
        endpoints or external or suites
    ):
        raise CannotImport("is no configuration of Gatus: it has no endpoints")
    found = ImportResult()
    found.each(endpoints, lambda one: _take(found, one))
    found.each(external, lambda one: _push(found, one))
    found.each(suites, lambda one: _suite(found, one))
    # The unread keys of entries are already reported.
    found.not_used("", document, ("endpoints", "services", "external-endpoints", "suites"))
    if "${" in path.read_text(errors="replace"):
        found.general.append("variables of the environment stand as they are written")
    return found


def _suite(found: ImportResult, one: Source) -> None:
    found.skip(
        str(one.get("name") or "unnamed"),
        f"is a suite of {len(one.get('endpoints') or [])} endpoints: "
        "write a synthetic monitor with these steps",
    )


def _take(found: ImportResult, one: Source) -> None:
    name, lost = str(one.get("name") or "unnamed"), list[str]()
    uid = found.name(f"{one.get('group')} {name}" if one.get("group") else name)
    text = str(one.get("url") or "")
    given = _dns(text, one["dns"]) if one.get("dns") else _of_url(text, one, lost)
    if given is None:
        found.skip(name, f"asks {text.partition('://')[0]}, which is not checked here")
        return
    client = one.get("client") or {}
    conditions: list[str] = []
    for condition in one.get("conditions") or []:
        turned = _condition(str(condition), given["type"])
        if turned is None:
            lost.append(f"condition {condition}")
        else:
            conditions += turned
    interval = _seconds(one.get("interval"), _INTERVAL)
    entry = {
        "name": name[:200],
        "tags": [str(one["group"])] if one.get("group") else [],
        "enabled": one.get("enabled", True),
        "interval_seconds": interval,
        "timeout_seconds": max(1, min(_seconds(client.get("timeout"), _TIMEOUT), interval, 300)),
        "failure_threshold": _threshold(one, "failure-threshold", _FAILURES),
        "recovery_threshold": _threshold(one, "success-threshold", _SUCCESSES),
        "conditions": conditions,
        **given,
    }
    found.add(uid, entry, lost, one)


def _push(found: ImportResult, one: Source) -> None:
    name = str(one.get("name") or "unnamed")
    heartbeat = one.get("heartbeat") or {}
    entry = {
        "name": name[:200],
        "type": "push",
        "tags": [str(one["group"])] if one.get("group") else [],
        "enabled": one.get("enabled", True),
        "interval_seconds": _seconds(heartbeat.get("interval"), 3_600),
    }
    lost = ["its push URL and token are others here"]
    if not heartbeat:
        lost.append("how often it is heard, which was not said: an hour is taken")
    uid = found.name(f"{one.get('group')} {name}" if one.get("group") else name)
    found.add(uid, entry, lost, one)


def _threshold(one: Mapping[str, Any], name: str, default: int) -> int:
    """Returns the lowest threshold of its alerts, 1 without alerts."""
    alerts = [alert for alert in one.get("alerts") or [] if isinstance(alert, Mapping)]
    thresholds = [int(alert.get(name) or default) for alert in alerts]
    return min(thresholds, default=1)


def _seconds(text: Any, otherwise: int) -> int:
    found = read_duration(str(text)) if text else None
    return otherwise if found is None else max(found // 1_000_000, 1)


def _of_url(text: str, one: Mapping[str, Any], lost: list[str]) -> dict[str, Any] | None:
    try:
        url = urlsplit(text)
        kind, port = _SCHEMES.get(url.scheme), url.port
    except ValueError:
        return None
    if kind is None:
        return None
    if kind in ("http", "websocket"):
        return _of_web(kind, text, one, lost)
    host = url.hostname or ""
    if kind == "icmp":
        return {"type": "icmp", "target": host}
    port = port or _PORTS.get(url.scheme)
    if kind == "ssh" and (one.get("ssh") or {}).get("password"):
        lost.append("its ssh password: only the banner is looked at")
    config = {"starttls": "smtp"} if url.scheme == "starttls" else {}
    shown = f"[{host}]" if ":" in host else host
    return {"type": kind, "target": f"{shown}:{port}", "config": config}


def _of_web(kind: str, text: str, one: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    headers = {str(name): str(value) for name, value in (one.get("headers") or {}).items()}
    for name in [name for name in headers if is_credential_header(name)]:
        headers[name] = ""
        lost.append(f"the value of its header {name}, which is to be given here by hand")
    config: dict[str, Any] = {"headers": headers} if headers else {}
    if kind == "websocket":
        if one.get("body"):
            config["send"] = str(one["body"])
        return {"type": kind, "target": text, "config": config}
    client = one.get("client") or {}
    if one.get("graphql"):
        config["body"] = json.dumps({"query": str(one.get("body") or "")})
        if not any(name.lower() == "content-type" for name in headers):
            config["headers"] = {**headers, "Content-Type": "application/json"}
    elif one.get("body"):
        config["body"] = str(one["body"])
    if client.get("insecure"):
        config["tls_skip_verify"] = True
    if client.get("ignore-redirect"):
        config["follow_redirects"] = False
    return {
        "type": kind,
        "target": text,
        "method": str(one.get("method") or "GET").upper(),
        "config": config,
    }


def _dns(resolver: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    config = {"record_type": str(asked.get("query-type") or "A")}
    if resolver:
        config["resolver"] = resolver.removeprefix("dns://")
    return {
        "type": "dns",
        "target": str(asked.get("query-name") or "").rstrip("."),
        "config": config,
    }


def _condition(text: str, kind: str) -> list[str] | None:
    """Returns the conditions with the same meaning, None if Leadline has none."""
    for theirs, ours in _RENAMED.items():
        text = text.replace(theirs, ours)
    if kind == "dns":
        text = text.replace("[BODY]", "[RESULT]").replace("[DNS_RCODE]", "[STATUS]")
        for number, code in enumerate(RCODES):
            text = re.sub(rf"^(\[STATUS\] .*)\b{code}\b", rf"\g<1>{number}", text)
    # `*` matches line breaks in Gatus. [RESULT] of dns has a line for each record.
    flags = "(?m)" if kind == "dns" else "(?s)"
    one_of = _ANY.fullmatch(text)
    if one_of is not None:
        parts = [part.strip() for part in one_of[2].split(",")]
        if one_of[1] == "[STATUS]" and kind != "dns":
            return status_condition(parts)
        return [f"{one_of[1]} matches {flags}^({'|'.join(re.escape(part) for part in parts)})$"]
    pattern = _PATTERN.fullmatch(text)
    if pattern is not None:
        wild = ".*".join(re.escape(part) for part in pattern[2].split("*"))
        return [f"{pattern[1]} matches {flags}^{wild}$"]
    present = _HAS.fullmatch(text)
    if present is not None:
        return [f"{present[1]} exists"]
    return None if re.search(r"\b(len|has|any|pat)\(", text) else [text]
