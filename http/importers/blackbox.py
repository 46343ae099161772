"""Import of the targets that a Prometheus blackbox exporter probes.

The source is a configuration of Prometheus or a file of targets, with the modules of the exporter
if they are given.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from ...probes.check.durations import read_duration
from ...probes.check.monitor_spec import is_credential_header
from .import_result import (
    ENTRIES_MOST,
    RCODES,
    CannotImport,
    ImportResult,
    printable,
    status_condition,
)
from .source import Source
from .yaml_file import BadYaml, read_yaml

# Modules of the example configuration of the exporter.
_KNOWN: Final[dict[str, dict[str, Any]]] = {
    "http_2xx": {"prober": "http"},
    "http_post_2xx": {"prober": "http", "http": {"method": "POST"}},
    "tcp_connect": {"prober": "tcp"},
    "icmp": {"prober": "icmp"},
    "ssh_banner": {"prober": "ssh"},
    "grpc": {"prober": "grpc", "grpc": {"tls": True}},
    "grpc_plain": {"prober": "grpc", "grpc": {"tls": False}},
}
# Each target has the labels of its group.
_LABELS_MOST: Final = 64
_MODULE_LARGEST: Final = 1 << 15
_INTERVAL: Final = 60
_TIMEOUT: Final = 10
_OF_GLOBAL: Final = ("scrape_interval", "scrape_timeout")
_OF_JOBS: Final = (*_OF_GLOBAL, "params")
_FAMILIES: Final = {"ip4": "ipv4", "ip6": "ipv6"}


def read_blackbox(path: Path, modules: Path | None = None) -> ImportResult:
    """Returns the import of a file. Raises: CannotImport."""
    document = _yaml(path)
    known = dict(_KNOWN)
    if modules is not None:
        given = _yaml(modules)
        if not isinstance(given, Mapping) or not isinstance(given.get("modules"), Mapping):
            raise CannotImport("is no configuration of the blackbox exporter: it has no modules")
        _expect_small(given["modules"])
        known |= given["modules"]
    found = ImportResult()
    if isinstance(document, Mapping):
        document = Source(document)
    targets = list(islice(_targets(document), ENTRIES_MOST + 1))
    if not targets:
        raise CannotImport("names no target that a blackbox exporter probes")
    found.each(targets, lambda one: _take(found, one, known))
    if isinstance(document, Source):
        _name_unused(found, document)
    used = {_module_of(labels, job) for _, labels, job in targets}
    if modules is not None:
        found.unused += [
            printable(f"{key} is not carried over") for key in given if key != "modules"
        ]
        found.unused += [
            printable(f"module {name} is not carried over: no target is probed by it")
            for name in given["modules"]
            if name not in used
        ]
    return found


def _name_unused(found: ImportResult, document: Source) -> None:
    """Reports the keys of the configuration of Prometheus that were not read."""
    found.not_used("", document, ("scrape_configs",))
    found.unused.append("job_name is not carried over")
    for job in document["scrape_configs"]:
        if not isinstance(job, Source):
            continue
        name = job.get("job_name")
        if _is_probe(job):
            # The unread labels of targets are already reported.
            for group in job.get("static_configs") or []:
                if isinstance(group, Source):
                    found.not_used(f"job {name}: static_configs.", group, ("labels",))
            found.not_used(f"job {name}: ", job, ("static_configs",))
        else:
            rule = f"job {name} is not carried over: its metrics_path is not /probe"
            found.general.append(printable(rule))


def _expect_small(modules: Mapping[str, Any]) -> None:
    """Each target reads its whole module."""
    for name, module in modules.items():
        if len(str(module)) > _MODULE_LARGEST:
            rule = f"module {name} is larger than {_MODULE_LARGEST} characters"
            raise CannotImport(printable(rule))


def _yaml(path: Path) -> Any:
    try:
        return read_yaml(path.read_bytes())
    except BadYaml as error:
        raise CannotImport(f"{path.name} {error}") from error


def _targets(document: Any) -> Iterator[tuple[str, Source, Source]]:
    """Yields (target, labels, job). The job is empty for a file of targets."""
    if isinstance(document, list):
        yield from _of_groups(document, Source({}))
        return
    if not isinstance(document, Source):
        return
    shared = document.get("global") or Source({})
    for job in document.get("scrape_configs") or []:
        if isinstance(job, Source) and _is_probe(job):
            # Read from the job itself, so that the key counts as read there.
            own = {key: job[key] for key in _OF_JOBS if key in job}
            of_all = {key: shared[key] for key in _OF_GLOBAL if key in shared}
            yield from _of_groups(job.get("static_configs") or [], Source({**of_all, **own}))


def _is_probe(job: Source) -> bool:
    return str(job.get("metrics_path", "")).rstrip("/") == "/probe"


def _of_groups(groups: list[Any], job: Source) -> Iterator[tuple[str, Source, Source]]:
    for group in groups:
        if isinstance(group, Mapping):
            labels = group.get("labels") or {}
            if len(labels) > _LABELS_MOST:
                raise CannotImport(f"has a group with more than {_LABELS_MOST} labels")
            for target in group.get("targets") or []:
                yield str(target), Source(dict(labels)), job


def _module_of(labels: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    asked = labels.get("__param_module") or labels.get("module")
    names = [asked] if asked else (job.get("params") or {}).get("module") or ["http_2xx"]
    return str(names[0])


def _take(found: ImportResult, one: tuple[str, Source, Source], known: Mapping[str, Any]) -> None:
    target, labels, job = one
    name = _module_of(labels, job)
    if not isinstance(known.get(name), Mapping):
        found.skip(target, f"is probed by the module {name}, which is not known: give --modules")
        return
    module = Source(known[name])
    lost: list[str] = []
    prober = str(module.get("prober"))
    given = _GIVEN.get(prober)
    if given is None:
        found.skip(target, f"is probed by {prober}, which is not checked here")
        return
    uid = found.name(re.sub(r"^[a-z]+://", "", target))
    interval = _seconds(job.get("scrape_interval"), _INTERVAL)
    timeout = _seconds(module.get("timeout") or job.get("scrape_timeout"), _TIMEOUT)
    entry = {
        "name": target[:200],
        "tags": [f"{key}:{labels[key]}" for key in labels if not key.startswith("__")],
        "interval_seconds": max(interval, 5),
        "timeout_seconds": max(1, min(timeout, interval, 300)),
        **given(uid, target, module.get(prober) or Source({}), lost),
    }
    if found.add(uid, entry, lost, module):
        found.not_used(f"monitor {entry['name']}: labels.", labels)


def _seconds(text: Any, otherwise: int) -> int:
    found = read_duration(str(text)) if text else None
    return otherwise if found is None else found // 1_000_000


def _http(uid: str, target: str, settings: Source, lost: list[str]) -> dict[str, Any]:
    codes = [str(code) for code in settings.get("valid_status_codes") or []] or ["200-299"]
    conditions = status_condition(codes)
    for pattern in settings.get("fail_if_body_not_matches_regexp") or []:
        conditions.append(f"[BODY] matches {pattern}")
    for pattern in settings.get("fail_if_body_matches_regexp") or []:
        lost.append(f"that the body must not match {pattern}")
    for rule in settings.get("fail_if_header_not_matches") or []:
        header, pattern = str(rule.get("header")), rule.get("regexp")
        if rule.get("allow_missing"):
            lost.append(f"that the header {header}, if it exists, must match {pattern}")
        else:
            conditions.append(f"[HEADER].{header.lower()} matches {pattern}")
    for rule in settings.get("fail_if_header_matches") or []:
        lost.append(f"that the header {rule.get('header')} must not match {rule.get('regexp')}")
        # Lost with or without allow_missing, so the key counts as read.
        rule.get("allow_missing")
    if settings.get("fail_if_not_ssl"):
        conditions.append("[CERT_EXPIRY] exists")
    follows = settings.get("follow_redirects", not settings.get("no_follow_redirects", False))
    config: dict[str, Any] = {
        "headers": _headers(settings, lost),
        "body": settings.get("body"),
        "tls_skip_verify": _skips_verification(settings),
        "follow_redirects": None if follows else False,
        "ip_family": _family(settings),
        **_credentials(uid, settings, lost),
    }
    return {
        "type": "http",
        "target": target if "://" in target else f"http://{target}",
        "method": str(settings.get("method") or "GET").upper(),
        "conditions": conditions,
        "config": {key: value for key, value in config.items() if value not in (None, "", {})},
    }


def _headers(settings: Source, lost: list[str]) -> dict[str, str]:
    headers = {str(key): str(value) for key, value in (settings.get("headers") or {}).items()}
    for name in [name for name in headers if is_credential_header(name)]:
        headers[name] = ""
        lost.append(f"the value of its header {name}, which is to be given here by hand")
    return headers


def _skips_verification(settings: Source) -> bool | None:
    return (settings.get("tls_config") or {}).get("insecure_skip_verify") or None


def _family(settings: Source) -> str | None:
    """Returns the address family if the exporter does not fall back to the other, else None."""
    if "ip_protocol_fallback" in settings and settings["ip_protocol_fallback"] is False:
        return _FAMILIES.get(str(settings.get("preferred_ip_protocol") or "ip6"))
    return None


def _credentials(uid: str, settings: Source, lost: list[str]) -> dict[str, Any]:
    if settings.get("basic_auth"):
        secret = f"{uid[:54]}-password"
        lost.append(f"its password: make it the secret {secret} of the project before applying")
        user = settings["basic_auth"].get("username")
        return {"auth_mode": "basic", "username": user, "password_ref": secret}
    authorization = settings.get("authorization") or {}
    if str(authorization.get("type") or "Bearer").lower() != "bearer":
        lost.append(f"its authorization by {authorization['type']}")
        return {}
    if authorization or settings.get("bearer_token") or settings.get("bearer_token_file"):
        secret = f"{uid[:57]}-token"
        lost.append(f"its token: make it the secret {secret} of the project before applying")
        return {"auth_mode": "bearer", "token_ref": secret}
    return {}


def _tcp(_uid: str, target: str, settings: Source, lost: list[str]) -> dict[str, Any]:
    if settings.get("tls"):
        server_name = (settings.get("tls_config") or {}).get("server_name")
        config = {"server_name": server_name} if server_name else {}
        return {"type": "tls", "target": target, "config": config}
    config = {"ip_family": _family(settings)}
    sent, conditions = _dialogue(settings, "[BODY]", lost)
    # The exporter ends each text with a line break.
    config["send"] = f"{sent}\n" if sent else None
    kept = {key: value for key, value in config.items() if value}
    return {"type": "tcp", "target": target, "conditions": conditions, "config": kept}


def _dialogue(settings: Source, placeholder: str, lost: list[str]) -> tuple[str, list[str]]:
    """Returns the text to send, and conditions on the response.

    Leadline sends once, before it reads. Any other dialogue is lost completely.
    """
    steps = settings.get("query_response") or []
    sent = [str(step["send"]) for step in steps if step.get("send")]
    expected = [str(step["expect"]) for step in steps if step.get("expect")]
    is_simple = len(steps) < 2 or (len(steps) == 2 and steps[0].get("send"))
    if len(sent) > 1 or len(expected) > 1 or not is_simple:
        lost.append("its query_response, which has more than one text to send or expect")
        return "", []
    if sent and expected and len(steps) == 1:
        lost.append("its query_response, which sends after it reads")
        return "", []
    return "".join(sent), [f"{placeholder} matches (?m){pattern}" for pattern in expected]


def _websocket(_uid: str, target: str, settings: Source, lost: list[str]) -> dict[str, Any]:
    sent, conditions = _dialogue(settings, "[BODY]", lost)
    config = {"headers": _headers(settings, lost), "send": sent}
    kept = {key: value for key, value in config.items() if value}
    return {"type": "websocket", "target": target, "conditions": conditions, "config": kept}


def _icmp(_uid: str, target: str, _settings: Source, _lost: list[str]) -> dict[str, Any]:
    return {"type": "icmp", "target": target}


def _ssh(_uid: str, target: str, _settings: Source, _lost: list[str]) -> dict[str, Any]:
    return {"type": "ssh", "target": target if ":" in target else f"{target}:22"}


def _dns(_uid: str, target: str, settings: Source, _lost: list[str]) -> dict[str, Any]:
    config = {"record_type": str(settings.get("query_type") or "ANY"), "resolver": target}
    if settings.get("dns_over_tls"):
        config["transport"] = "dot"
    elif settings.get("transport_protocol"):
        config["transport"] = str(settings["transport_protocol"])
    codes = [str(RCODES.index(str(code))) for code in settings.get("valid_rcodes") or []]
    conditions = [f"[STATUS] matches ^({'|'.join(codes)})$"] if codes else []
    name = str(settings.get("query_name") or "").rstrip(".")
    return {"type": "dns", "target": name, "conditions": conditions, "config": config}


def _grpc(_uid: str, target: str, settings: Source, _lost: list[str]) -> dict[str, Any]:
    config = {
        "tls": bool(settings.get("tls")) or None,
        "tls_skip_verify": _skips_verification(settings),
        "service": settings.get("service"),
    }
    kept = {key: value for key, value in config.items() if value not in (None, "")}
    return {"type": "grpc", "target": target, "config": kept}


_GIVEN: Final = {
    "http": _http,
    "websocket": _websocket,
    "tcp": _tcp,
    "icmp": _icmp,
    "ssh": _ssh,
    "dns": _dns,
    "grpc": _grpc,
}
