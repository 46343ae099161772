"""Prometheus: the targets that its blackbox exporter probes, from a configuration of Prometheus or
a file of targets, with the exporter's own modules where they are given.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from ...probes.check.durations import read_duration
from ...probes.check.monitor_spec import is_credential_header
from .import_result import CannotImport, ImportResult, status_condition

# What the exporter's own example calls its modules.
_KNOWN: Final[dict[str, dict[str, Any]]] = {
    "http_2xx": {"prober": "http"},
    "http_post_2xx": {"prober": "http", "http": {"method": "POST"}},
    "tcp_connect": {"prober": "tcp"},
    "icmp": {"prober": "icmp"},
    "ssh_banner": {"prober": "ssh"},
    "grpc": {"prober": "grpc", "grpc": {"tls": True}},
    "grpc_plain": {"prober": "grpc", "grpc": {"tls": False}},
}
_INTERVAL: Final = 60
_TIMEOUT: Final = 10
_UNSEEN: Final = {
    "http": ("fail_if_ssl", "proxy_url", "oauth2", "compression", "valid_http_versions"),
    "tcp": ("query_response",),
    "dns": ("validate_answer_rrs", "validate_authority_rrs", "validate_additional_rrs"),
    "icmp": ("payload_size", "dont_fragment"),
    "grpc": (),
}


def read_blackbox(path: Path, modules: Path | None = None) -> ImportResult:
    """Raises CannotImport."""
    document = _yaml(path)
    known = dict(_KNOWN)
    if modules is not None:
        given = _yaml(modules)
        if not isinstance(given, Mapping) or not isinstance(given.get("modules"), Mapping):
            raise CannotImport("is no configuration of the blackbox exporter: it has no modules")
        known |= given["modules"]
    found = ImportResult()
    targets = list(_targets(document))
    if not targets:
        raise CannotImport("names no target that a blackbox exporter probes")
    found.each(targets, lambda one: _take(found, one, known))
    found.general.append("rules of alerting are not carried over")
    return found


def _yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, RecursionError) as error:
        raise CannotImport(f"{path.name} is no YAML") from error


def _targets(document: Any) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """(target, labels, job); a file of targets has no job."""
    if isinstance(document, list):
        yield from _of_groups(document, {})
        return
    if not isinstance(document, Mapping):
        return
    shared = document.get("global") or {}
    for job in document.get("scrape_configs") or []:
        if isinstance(job, Mapping) and str(job.get("metrics_path", "")).rstrip("/") == "/probe":
            yield from _of_groups(job.get("static_configs") or [], {**shared, **job})


def _of_groups(
    groups: list[Any], job: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    for group in groups:
        if isinstance(group, Mapping):
            for target in group.get("targets") or []:
                yield str(target), group.get("labels") or {}, job


def _take(
    found: ImportResult,
    one: tuple[str, Mapping[str, Any], Mapping[str, Any]],
    known: Mapping[str, Any],
) -> None:
    target, labels, job = one
    asked = labels.get("__param_module") or labels.get("module")
    names = [asked] if asked else (job.get("params") or {}).get("module") or ["http_2xx"]
    name = str(names[0])
    module = known.get(name)
    if not isinstance(module, Mapping):
        found.skip(target, f"is probed by the module {name}, which is not known: give --modules")
        return
    lost: list[str] = []
    prober = str(module.get("prober"))
    settings = module.get(prober) or {}
    given = _GIVEN.get(prober)
    if given is None:
        found.skip(target, f"is probed by {prober}, which is not checked here")
        return
    lost += [
        f"{prober}.{setting}"
        for setting in settings
        if setting.startswith(_UNSEEN.get(prober) or ("\x00",))
    ]
    uid = found.name(re.sub(r"^[a-z]+://", "", target))
    interval = _seconds(job.get("scrape_interval"), _INTERVAL)
    timeout = _seconds(module.get("timeout") or job.get("scrape_timeout"), _TIMEOUT)
    entry = {
        "name": target[:200],
        "tags": [f"{key}:{value}" for key, value in labels.items() if not key.startswith("__")],
        "interval_seconds": max(interval, 5),
        "timeout_seconds": max(1, min(timeout, interval, 300)),
        **given(uid, target, settings, lost),
    }
    found.add(uid, entry, lost)


def _seconds(text: Any, otherwise: int) -> int:
    found = read_duration(str(text)) if text else None
    return otherwise if found is None else found // 1_000_000


def _http(uid: str, target: str, settings: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    codes = [str(code) for code in settings.get("valid_status_codes") or []] or ["200-299"]
    conditions = status_condition(codes)
    for pattern in settings.get("fail_if_body_not_matches_regexp") or []:
        conditions.append(f"[BODY] matches {pattern}")
    for pattern in settings.get("fail_if_body_matches_regexp") or []:
        lost.append(f"that the body must not match {pattern}")
    headers = {str(key): str(value) for key, value in (settings.get("headers") or {}).items()}
    for name in [name for name in headers if is_credential_header(name)]:
        headers[name] = ""
        lost.append(f"the value of its header {name}, which is to be given here by hand")
    follows = settings.get("follow_redirects", not settings.get("no_follow_redirects", False))
    config: dict[str, Any] = {
        "headers": headers,
        "body": settings.get("body"),
        "tls_skip_verify": (settings.get("tls_config") or {}).get("insecure_skip_verify") or None,
        "follow_redirects": None if follows else False,
        **_credentials(uid, settings, lost),
    }
    return {
        "type": "http",
        "target": target if "://" in target else f"http://{target}",
        "method": str(settings.get("method") or "GET").upper(),
        "conditions": conditions,
        "config": {key: value for key, value in config.items() if value not in (None, "", {})},
    }


def _credentials(uid: str, settings: Mapping[str, Any], lost: list[str]) -> dict[str, Any]:
    if settings.get("basic_auth"):
        secret = f"{uid[:54]}-password"
        lost.append(f"its password: make it the secret {secret} of the project before applying")
        user = settings["basic_auth"].get("username")
        return {"auth_mode": "basic", "username": user, "password_ref": secret}
    if any(settings.get(key) for key in ("bearer_token", "bearer_token_file", "authorization")):
        secret = f"{uid[:57]}-token"
        lost.append(f"its token: make it the secret {secret} of the project before applying")
        return {"auth_mode": "bearer", "token_ref": secret}
    return {}


def _tcp(_uid: str, target: str, settings: Mapping[str, Any], _lost: list[str]) -> dict[str, Any]:
    return {"type": "tls" if settings.get("tls") else "tcp", "target": target}


def _icmp(_uid: str, target: str, _settings: Mapping[str, Any], _lost: list[str]) -> dict[str, Any]:
    return {"type": "icmp", "target": target}


def _ssh(_uid: str, target: str, _settings: Mapping[str, Any], _lost: list[str]) -> dict[str, Any]:
    return {"type": "ssh", "target": target if ":" in target else f"{target}:22"}


def _dns(_uid: str, target: str, settings: Mapping[str, Any], _lost: list[str]) -> dict[str, Any]:
    config = {"record_type": str(settings.get("query_type") or "ANY"), "resolver": target}
    if settings.get("transport_protocol"):
        config["transport"] = str(settings["transport_protocol"])
    name = str(settings.get("query_name") or "").rstrip(".")
    return {"type": "dns", "target": name, "config": config}


def _grpc(_uid: str, target: str, settings: Mapping[str, Any], _lost: list[str]) -> dict[str, Any]:
    config = {"tls": bool(settings.get("tls")) or None, "service": settings.get("service")}
    kept = {key: value for key, value in config.items() if value not in (None, "")}
    return {"type": "grpc", "target": target, "config": kept}


_GIVEN: Final = {
    "http": _http,
    "tcp": _tcp,
    "icmp": _icmp,
    "ssh": _ssh,
    "dns": _dns,
    "grpc": _grpc,
}
