"""The importers use, or name in the report, every key of a file of the other tool."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from leadline.http.importers import ImportResult, read_of

Document = dict[str, Any]
KeyPath = tuple[str | int, ...]

_KUMA_WEB = {
    "id": 1, "name": "Shop", "type": "json-query", "url": "https://shop.example.org/",
    "description": "The shop", "pathName": "All / Shop", "parent": 9, "childrenIDs": [3],
    "method": "POST", "hostname": "unused.example.org", "port": 8080, "maxretries": 2,
    "weight": 2000, "active": False, "forceInactive": True, "user_id": 1, "timeout": 24,
    "interval": 30, "retryInterval": 15, "retryOnlyOnStatusCodeFailure": True,
    "resendInterval": 10, "keyword": "tea", "invertKeyword": True, "expiryNotification": True,
    "domainExpiryNotification": True, "ignoreTls": True, "upsideDown": False, "packetSize": 64,
    "maxredirects": 0, "accepted_statuscodes": ["200-299", "301"], "saveResponse": True,
    "saveErrorResponse": True, "responseMaxLength": 1024, "cacheBust": True, "ipFamily": "ipv4",
    "dns_resolve_type": "MX", "dns_resolve_server": "9.9.9.9", "dns_last_result": "x",
    "docker_container": "web", "docker_host": 1, "proxyId": 1, "notificationIDList": {"1": True},
    "tags": [{"tag_id": 1, "monitor_id": 1, "name": "team", "value": "web", "color": "#fff"}],
    "maintenance": True, "mqttTopic": "t", "mqttSuccessMessage": "ok",
    "mqttCheckType": "json-query",
    "databaseQuery": "select 1", "databaseConnectionString": "mysql://db", "authMethod": "basic",
    "grpcUrl": "x:1", "grpcProtobuf": "p", "grpcMethod": "m", "grpcServiceName": "s",
    "grpcEnableTls": True, "grpcBody": "{}", "grpcMetadata": "{}", "radiusCalledStationId": "1",
    "radiusCallingStationId": "2", "radiusUsername": "r", "radiusSecret": "hunter2", "game": "tf2",
    "gamedigGivenPortOnly": False, "httpBodyEncoding": "xml", "jsonPath": "$.count",
    "expectedValue": "5", "jsonPathOperator": ">=", "kafkaProducerTopic": "t",
    "kafkaProducerBrokers": ["k:1"], "kafkaProducerSsl": True, "kafkaProducerMessage": "m",
    "kafkaProducerAllowAutoTopicCreation": True,
    "kafkaProducerSaslOptions": {"mechanism": "plain"}, "screenshot": "s.png", "cacheKey": "x",
    "remote_browser": 1, "rabbitmqNodes": ["http://r:15672"], "rabbitmqUsername": "u",
    "rabbitmqPassword": "hunter2", "smtpSecurity": "secure", "snmpOid": "1.3", "snmpVersion": "2c",
    "wsSubprotocol": "chat", "wsIgnoreSecWebsocketAcceptHeader": True, "conditions": "[1]",
    "headers": '{"Accept": "text/html"}', "body": "<a/>", "basic_auth_user": "u",
    "basic_auth_pass": "hunter2", "oauth_client_id": "c", "oauth_client_secret": "hunter2",
    "oauth_token_url": "https://x", "oauth_scopes": "a", "oauth_audience": "a",
    "oauth_auth_method": "client_secret_basic", "pushToken": "hunter2", "authWorkstation": "w",
    "authDomain": "d", "tlsCa": "ca", "tlsCert": "cert", "tlsKey": "hunter2",
    "includeSensitiveData": True, "manual_status": 1, "protocol": "p", "location": "world",
    "ping_count": 3, "ping_numeric": True, "ping_per_request_timeout": 2,
    "system_service_name": "n",
    "bearer_token": "hunter2", "expectedTlsAlert": "none", "subtype": "icmp",
}  # fmt: skip


def _expression(variable: str, operator: str, value: str, joined: str = "and") -> Document:
    return {
        "id": "1", "type": "expression", "variable": variable, "operator": operator,
        "value": value, "andOr": joined,
    }  # fmt: skip


KUMA: Document = {
    "version": "2.0.0",
    "notificationList": [{"id": 1, "name": "mail"}],
    "proxyList": [{"id": 1, "host": "proxy"}],
    "monitorList": [
        _KUMA_WEB,
        {"id": 9, "name": "All", "type": "group", "url": "https://", "active": False},
        {
            "id": 2, "name": "Name", "type": "dns", "hostname": "example.org", "port": 53,
            "dns_resolve_type": "A", "dns_resolve_server": "1.1.1.1", "dns_last_result": "x",
            "conditions": json.dumps([_expression("record", "starts_with", "93.")]),
        },
        {
            "id": 3, "name": "Rows", "type": "postgres",
            "databaseConnectionString": "postgres://u:hunter2@db/shop",
            "databaseQuery": "select 1",
            "conditions": json.dumps([
                _expression("result", "equals", "ok"),
                {"id": "2", "type": "group", "andOr": "and",
                 "children": [_expression("result", "ends_with", "k")]},
            ]),
        },
        {
            "id": 4, "name": "Queue", "type": "rabbitmq", "rabbitmqUsername": "u",
            "rabbitmqPassword": "hunter2",
            "rabbitmqNodes": '["https://r1:15671", "https://r2:15671"]',
        },
        {
            "id": 5, "name": "Chat", "type": "websocket-upgrade", "url": "wss://chat.example.org",
            "wsSubprotocol": "chat", "wsIgnoreSecWebsocketAcceptHeader": True,
        },
        {"id": 6, "name": "Cert", "type": "tls", "hostname": "example.org", "port": 8443},
        {
            "id": 7, "name": "Mail", "type": "smtp", "hostname": "mail.example.org", "port": 587,
            "smtpSecurity": "starttls",
        },
        {"id": 8, "name": "Job", "type": "push", "pushToken": "hunter2", "interval": 90},
    ],
}  # fmt: skip

GATUS: Document = yaml.safe_load("""
debug: true
metrics: true
skip-invalid-config-update: true
disable-monitoring-lock: true
concurrency: 5
storage: {type: sqlite, path: /data}
alerting: {slack: {webhook-url: "https://x"}}
announcements: [{message: hello}]
security: {basic: {username: u, password-bcrypt-base64: hunter2}}
connectivity: {checker: {target: "1.1.1.1:53"}}
web: {port: 80}
ui: {title: Shop}
maintenance: {start: "23:00", duration: 1h}
remote: {instances: [{url: "https://x"}]}
tunneling: {bastion: {type: SSH}}
endpoints:
  - name: front
    enabled: false
    group: shop
    url: https://shop.example.org/
    method: POST
    graphql: true
    body: "{ users { name } }"
    interval: 5m
    headers: {X-Shop: tea}
    labels: {team: web}
    extra-labels: {team: web}
    store: {token: "[BODY].token"}
    always-run: true
    conditions: ["has([BODY].data) == true", "len([BODY].data) > 1", "[STATUS] == any(200, 204)"]
    alerts:
      - {type: slack, enabled: true, failure-threshold: 5, success-threshold: 2,
         minimum-reminder-interval: 1h, send-on-resolved: true, description: d,
         provider-override: {webhook-url: x}}
    maintenance-windows: [{start: "01:00", duration: 1h, timezone: UTC, every: [Monday]}]
    client:
      insecure: true
      ignore-redirect: true
      timeout: 3s
      dns-resolver: tcp://8.8.8.8:53
      proxy-url: http://proxy
      oauth2: {token-url: "https://x", client-id: c, client-secret: hunter2, scopes: [a]}
      identity-aware-proxy: {audience: a}
      tls: {certificate-file: c, private-key-file: k, renegotiation: never}
      network: ip4
      tunnel: bastion
    ui: {hide-conditions: true, hide-hostname: true, hide-port: true, hide-url: true,
         hide-errors: true, dont-resolve-failed-conditions: true,
         resolve-successful-conditions: true,
         badge: {response-time: {thresholds: [50]}}}
  - name: names
    url: 8.8.8.8
    dns: {query-name: example.org., query-type: AAAA}
    conditions: ["[BODY] == pat(93.*)", "[DNS_RCODE] == any(NOERROR, NXDOMAIN)"]
  - name: shell
    url: ssh://host.example.org
    ssh: {username: u, password: hunter2, private-key: hunter2}
    body: '{"command": "true"}'
  - {name: chat, url: "wss://x.example.org", body: hi, client: {insecure: true}}
  - {name: cert, url: "tls://x.example.org", client: {insecure: true}, body: x}
external-endpoints:
  - {name: nightly, enabled: false, group: jobs, token: hunter2, heartbeat: {interval: 24h},
     alerts: [{type: slack}], maintenance-windows: [{start: "01:00"}]}
suites:
  - {name: checkout, endpoints: [{name: a, url: "https://x"}]}
""")

HEALTHCHECKS: Document = {
    "checks": [
        {
            "name": "Backup", "slug": "backup", "tags": "db prod", "desc": "Nightly", "grace": 600,
            "n_pings": 5, "status": "paused", "started": True, "last_ping": "2026-01-01T00:00:00Z",
            "last_duration": 5, "next_ping": "2026-01-02T00:00:00Z", "manual_resume": True,
            "methods": "POST", "subject": "OK", "subject_fail": "ERROR", "start_kw": "START",
            "success_kw": "SUCCESS", "failure_kw": "FAIL", "filter_subject": True,
            "filter_body": True, "filter_http_body": True, "filter_default_fail": True,
            "badge_url": "https://x", "uuid": "u", "unique_key": "k", "ping_url": "https://x",
            "update_url": "https://x", "pause_url": "https://x", "resume_url": "https://x",
            "channels": "1,2", "timeout": 3600,
        },
        {"name": "Cron", "schedule": "*/15 * * * *", "tz": "Europe/Riga"},
    ],
    "next": "https://x",
}  # fmt: skip

PROMETHEUS: Document = yaml.safe_load("""
global: {scrape_interval: 30s, scrape_timeout: 5s, evaluation_interval: 1m, external_labels: {a: b}}
rule_files: [rules.yml]
alerting: {alertmanagers: [{static_configs: [{targets: [x]}]}]}
remote_write: [{url: "http://x"}]
scrape_configs:
  - job_name: web
    metrics_path: /probe
    scrape_interval: 1m
    scrape_timeout: 7s
    scheme: https
    honor_labels: true
    params: {module: [web], hostname: [x], debug: ["true"]}
    static_configs:
      - targets: ["https://shop.example.org"]
        labels: {team: web, __param_hostname: x}
    relabel_configs: [{source_labels: [__address__], target_label: __param_target}]
    file_sd_configs: [{files: [x.yml]}]
  - job_name: others
    metrics_path: /probe
    static_configs:
      - {targets: ["db:5432"], labels: {module: text}}
      - {targets: ["secure:443"], labels: {module: secure}}
      - {targets: ["9.9.9.9"], labels: {module: names}}
      - {targets: ["10.0.0.1"], labels: {module: echo}}
      - {targets: ["api:443"], labels: {module: api}}
      - {targets: ["wss://chat.example.org"], labels: {module: chat}}
      - {targets: ["host"], labels: {__param_module: shell}}
  - {job_name: node}
""")
_TLS = {"insecure_skip_verify": True, "ca_file": "c", "cert_file": "c", "key_file": "k",
        "server_name": "x", "min_version": "TLS12", "max_version": "TLS13"}  # fmt: skip
_FAMILY = {"preferred_ip_protocol": "ip4", "ip_protocol_fallback": False,
           "source_ip_address": "10.0.0.9"}  # fmt: skip
MODULES: Document = {
    "modules": {
        "web": {
            "prober": "http",
            "http": {
                **_FAMILY, "method": "POST", "valid_status_codes": [200],
                "valid_http_versions": ["HTTP/2.0"], "headers": {"X-Shop": "tea"},
                "body_size_limit": "1MB", "compression": "gzip", "follow_redirects": False,
                "fail_if_ssl": True, "fail_if_not_ssl": True,
                "fail_if_body_json_matches_cel": "x", "fail_if_body_json_not_matches_cel": "x",
                "fail_if_body_matches_regexp": ["error"],
                "fail_if_body_not_matches_regexp": ["ok"],
                "fail_if_header_matches": [
                    {"header": "Server", "regexp": "old", "allow_missing": True}],
                "fail_if_header_not_matches": [
                    {"header": "Content-Type", "regexp": "^text/"},
                    {"header": "Via", "regexp": "x", "allow_missing": True}],
                "tls_config": _TLS, "basic_auth": {"username": "u", "password": "hunter2"},
                "proxy_url": "http://p", "no_proxy": "x", "proxy_from_environment": True,
                "proxy_connect_headers": {"A": ["b"]}, "skip_resolve_phase_with_proxy": True,
                "oauth2": {"client_id": "c"}, "enable_http2": False, "enable_http3": True,
                "body": "x", "body_file": "f", "use_http3": True,
            },
        },
        "text": {
            "prober": "tcp", "timeout": "3s", "http": {"method": "GET"},
            "tcp": {**_FAMILY, "query_response": [
                {"send": "PING"}, {"expect": "^PONG", "labels": [{"name": "a", "value": "b"}]}]},
        },
        "secure": {"prober": "tcp", "tcp": {
            "tls": True, "tls_config": _TLS, "query_response": [{"starttls": True}]}},
        "names": {"prober": "dns", "dns": {
            **_FAMILY, "transport_protocol": "tcp", "dns_over_tls": False, "query_name": "x.org",
            "query_type": "MX", "query_class": "CH", "recursion_desired": False,
            "valid_rcodes": ["NOERROR", "NXDOMAIN"], "tls_config": _TLS,
            "validate_answer_rrs": {"fail_if_matches_regexp": ["x"]},
            "validate_authority_rrs": {"fail_if_matches_regexp": ["x"]},
            "validate_additional_rrs": {"fail_if_matches_regexp": ["x"]}}},
        "echo": {"prober": "icmp", "icmp": {
            **_FAMILY, "dont_fragment": True, "payload_size": 64, "ttl": 9}},
        "api": {"prober": "grpc", "grpc": {
            **_FAMILY, "service": "s", "tls": True, "tls_config": _TLS, "metadata": {"a": "b"}}},
        "chat": {"prober": "websocket", "websocket": {
            "headers": {"X-Shop": "tea"}, "http_config": {"basic_auth": {"username": "u"}},
            "query_response": [{"send": "hi"}, {"expect": "hello"}]}},
        "shell": {"prober": "ssh", "ssh": {"x": 1}},
        "idle": {"prober": "tcp"},
    },
    "other": 1,
}  # fmt: skip

EXAMPLES = {
    "kuma": {"file": KUMA},
    "gatus": {"file": GATUS},
    "healthchecks": {"file": HEALTHCHECKS},
    "blackbox": {"file": PROMETHEUS, "modules": MODULES},
}


def _read(kind: str, folder: Path, example: Document) -> ImportResult:
    for name, document in example.items():
        (folder / name).write_text(json.dumps(document))
    return read_of(kind, folder / "file", folder / "modules" if "modules" in example else None)


def _report(found: ImportResult) -> str:
    lost = [f"{note.name}: {what}" for note in found.notes for what in note.lost]
    return "\n".join([*lost, *found.unused, *found.general])


def _paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The path of each key of a mapping, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from _paths(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _paths(inner, (*path, at))


def _without(example: Document, path: KeyPath, replacement: Any = None) -> Document:
    """A copy without the key, or with another value of it."""
    changed: Any = copy.deepcopy(example)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    if replacement is not None:
        holder[path[-1]] = replacement
    return changed  # type: ignore[no-any-return]


def _is_named(path: KeyPath, report: str) -> bool:
    """Whether the report names the key, or a key that contains it."""
    return any(
        re.search(rf"(?<![\w-]){re.escape(step)}(,| is not| are not)", report)
        for step in path[1:]
        if isinstance(step, str)
    )


def _has_effect(kind: str, folder: Path, example: Document, path: KeyPath) -> bool:
    whole = _read(kind, folder, example)
    for replacement in (None, "other"):
        try:
            found = _read(kind, folder, _without(example, path, replacement))
        except ValueError:
            return True
        if found != whole:
            return True
    return False


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_key_has_an_effect_or_is_in_the_report(tmp_path: Path, kind: str) -> None:
    example = EXAMPLES[kind]
    found = _read(kind, tmp_path, example)
    report = _report(found)
    unnamed = [
        ".".join(map(str, path))
        for path in _paths(example)
        if len(path) > 1
        # A skipped suite is in the report as a whole.
        and "suites" not in path
        and not _is_named(path, report)
        and not _has_effect(kind, tmp_path, example, path)
    ]
    assert unnamed == []
    assert "hunter2" not in str(found)
    assert not [note for note in found.notes if "not known here" in str(note.lost)]
