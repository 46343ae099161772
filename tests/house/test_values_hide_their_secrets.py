"""A value that carries a secret does not spell it, wherever a traceback or a log may show it."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from leadline.daemon.agent.agent_config import AgentConfig
from leadline.daemon.agent.ring_buffer import BufferedResult
from leadline.http.agents.schemas.agent_tokens import CreatedAgentToken
from leadline.http.monitors.schemas.monitors import CreateMonitor, UpdateMonitor
from leadline.http.monitors.schemas.secrets import CreateSecretRequest, UpdateSecretRequest
from leadline.http.wire.route import Request, Response
from leadline.probes.check.check import make_check
from leadline.probes.check.condition_evaluation import ProbeValues
from leadline.probes.check.oauth2 import TokenSetup
from leadline.probes.check.private_key import ClientCertificate
from leadline.probes.check.proxy import Proxy
from leadline.probes.check.target import read_url
from leadline.probes.check.token_cache import CachedToken
from leadline.probes.kinds.synthetic.scenario import read_scenario
from leadline.probes.kinds.synthetic.synthetic_probe import _Run
from leadline.probes.kinds.synthetic.template import Values
from leadline.probes.net.http_exchange import HttpRequest, HttpResponse, RawResponse
from leadline.probes.net.sessions.ssh_session import Login
from leadline.probes.net.tls_contexts import TlsContexts
from leadline.storage.monitors.rules.monitor import MonitorDraft, MonitorType

SECRET = "tr0ub4dor"
BYTES = SECRET.encode()
URL = read_url(f"https://api.example/?key={SECRET}")
TARGET = "https://api.example/"
URL_ALONE = read_url(TARGET)
CONFIG = {"password": SECRET, "headers": {"Authorization": SECRET}}
STEP = {"url": URL.__str__(), "headers": {"X": SECRET}, "body": SECRET, "method": "POST"}
ASKED: dict[str, Any] = {"context": None, "principal": None, "scope": None, "ids": {}}


@pytest.mark.parametrize(
    "value",
    [
        make_check("http", TARGET, None, CONFIG, [], secrets={"token": SECRET}),
        HttpRequest(method="POST", url=URL, headers=[("Authorization", SECRET)], body=BYTES),
        HttpResponse(
            status=200, headers={"x": SECRET}, body=BYTES, whole=True, address="", url=URL
        ),
        RawResponse(200, [(b"set-cookie", BYTES)], BYTES, whole=True),
        ProbeValues(body=SECRET, headers={"x": SECRET}, result=SECRET),
        Values({"x": SECRET}, {"x": SECRET}),
        _Run({"x": SECRET}, {"x": SECRET}),
        read_scenario({"steps": [STEP]}),
        Login("root", SECRET, SECRET, ""),
        ClientCertificate("", SECRET),
        TokenSetup("", "", SECRET, "", "", "", Proxy(URL_ALONE, SECRET)),
        CachedToken(token=SECRET),
        ProbeValues(hidden=(SECRET,)),
        AgentConfig(URL_ALONE, TlsContexts(), SECRET, "hut", Path()),
        BufferedResult(1, 0, BYTES),
        MonitorDraft(name="a", type="http", target=TARGET, config=CONFIG),
        CreateMonitor(name="a", type=MonitorType.HTTP, target=TARGET, config=CONFIG),
        UpdateMonitor(config=CONFIG),
        CreateSecretRequest(name="a", value=SECRET),
        UpdateSecretRequest(value=SECRET),
        CreatedAgentToken(id=UUID(int=1), name="a", region="core", token=SECRET),
        Response(body=SECRET, headers={"Set-Cookie": SECRET}),
        Request(
            **ASKED,
            words={"token": SECRET},
            body=UpdateSecretRequest(value=SECRET),
            query={"token": SECRET},
            method="POST",
            client="",
            session_hash=BYTES,
            headers={"cookie": SECRET},
            path=f"/push/{SECRET}",
            form={"password": [SECRET]},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_with_a_secret_does_not_print_it(value: object) -> None:
    assert SECRET not in f"{value!r} {value!s}"
