"""An agent reports the certificates that its checks saw, to a server that accepts them."""

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from leadline.daemon.agent import certificate_reporter, job_runner
from leadline.daemon.agent.job_parser import micros_of
from leadline.probes.check.result import Result
from leadline.probes.jobs.agent_protocol import CERTIFICATES
from leadline.probes.net.certificate_expiry import end_of
from leadline.probes.runner import run
from tests.agents.fake_server import FakeServer
from tests.agents.fast_agent import FastTime, agent, until
from tests.agents.job_samples import job
from tests.probes.kinds.test_http import serving_tls
from tests.probes.net.test_seen_certificates import CERTIFICATES as SAMPLES
from tests.probes.net.test_seen_certificates import of_version
from tests.support.peers.servers import answer, answering


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_reporter, "PAUSE_SECONDS", 0.1)


ACCEPTS = {"accepts": [CERTIFICATES, "another@1"]}


async def run_jobs(
    folder: Path, server: FakeServer, time: FastTime, *, done: int = 2, **more: Any
) -> trustme.LeafCert:
    """Runs checks of one https target, and returns its certificate."""
    certificate = trustme.CA().issue_cert("127.0.0.1")
    async with serving_tls(answering(answer()), certificate) as port:
        now = time.truth()
        server.extra = [
            job(
                now,
                kind="http",
                target=f"https://127.0.0.1:{port}/",
                config={"tls_skip_verify": "true"},
                is_window=False,
                lease_until=now + 10**10,
                revision=3,
            )
            for _ in range(2)
        ]
        async with agent(folder, server.url, time.count):
            await until(lambda: len(server.results) >= done)
            if server.greeting:
                await until(lambda: len(server.certificates) >= done)
    return certificate


async def test_a_server_that_accepts_certificates_gets_them(tmp_path: Path) -> None:
    time = FastTime()
    async with FakeServer(time.truth, greeting=ACCEPTS).listening() as server:
        certificate = await run_jobs(tmp_path, server, time)
    assert all(CERTIFICATES in one["workflow_kinds"] for one in server.heard)
    assert [one["revision"] for one in server.certificates] == [3, 3]
    found = {one["monitor_id"] for one in server.certificates}
    assert found == {item["monitor_id"] for _, item in server.results}
    (pem, *_) = certificate.cert_chain_pems
    end = end_of(ssl.PEM_cert_to_DER_cert(pem.bytes().decode()))
    assert {micros_of(one["ends_at"]) for one in server.certificates} == {end}


async def test_a_server_of_an_earlier_version_gets_results_only(tmp_path: Path) -> None:
    time = FastTime()
    async with FakeServer(time.truth).listening() as server:
        await run_jobs(tmp_path, server, time)
    assert server.certificates == []
    assert "certificates" not in {one["route"] for one in server.headers}


@pytest.mark.parametrize("status", [None, 503])
async def test_certificates_wait_for_an_answer(tmp_path: Path, status: int | None) -> None:
    time, failures = FastTime(), list[str]()

    def fault(route: str, _server: FakeServer) -> Any:
        if route != "certificates" or len(failures) >= 2:
            return ...
        failures.append(route)
        return None if status is None else (status, {"error": "busy"})

    async with FakeServer(time.truth, greeting=ACCEPTS, fault=fault).listening() as server:
        await run_jobs(tmp_path, server, time)
    assert (len(failures), len(server.certificates)) == (2, 2)


async def test_a_certificate_that_no_parser_reads_stops_no_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def odd_run(*given: Any) -> Result:
        return replace(await run(*given), certificate=of_version(SAMPLES[0], 1))

    monkeypatch.setattr(job_runner, "run", odd_run)
    time = FastTime()
    async with FakeServer(time.truth).listening() as server:
        await run_jobs(tmp_path, server, time)
    assert (len(server.results), server.certificates) == (2, [])
