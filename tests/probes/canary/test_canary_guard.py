"""A canary reaches only globally routable addresses over HTTPS, at every hop of every stage, and
sends its secrets only to the origins that its workflow names. The policy of the process allows
private addresses, as for every other type of check.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from ipaddress import ip_network
from typing import Any

import pytest
import trustme

from leadline.probes.check.canary_stages import Stage, StageEnd
from leadline.probes.check.result import RunOutcome
from leadline.probes.kinds.canary.workflow import CORRELATION
from leadline.probes.net.egress_policy import probe_policy
from tests.support.peers.canary_network import asking, canary_network
from tests.support.peers.job_queue import (
    ELSEWHERE,
    HERE,
    HOST,
    KEY,
    OTHER,
    THERE,
    Asker,
    event,
    moved,
    polled,
    streamed,
    streaming,
)
from tests.support.peers.servers import Names, Prober

pytestmark = pytest.mark.needs("ip", "root")
# Addresses that answer here and must not be reached, with their spellings.
BEHIND = [*ELSEWHERE, "127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:a00:1", "::ffff:7f00:1"]


@pytest.fixture
def network() -> Iterator[None]:
    with canary_network():
        yield


@pytest.fixture
async def asker(
    network: None, prober: Prober, names: Names, authority: trustme.CA
) -> AsyncIterator[Asker]:
    async with asking(prober, names, authority) as asker:
        assert asker.prober.reach.policy.allow_private
        names.ttl = 0
        yield asker


def literal(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def leads(names: Names, host: str, *addresses: str) -> None:
    """Sets the addresses of the name."""
    for kind, wanted in (("A", "."), ("AAAA", ":")):
        found = [address for address in addresses if wanted in address and kind == kind_of(address)]
        names.records[host, kind] = [found]


def kind_of(address: str) -> str:
    return "AAAA" if ":" in address else "A"


@pytest.mark.parametrize("address", BEHIND)
async def test_addresses_that_are_not_global_are_blocked(asker: Asker, address: str) -> None:
    leads(asker.names, "inside.example", address)
    for host in (literal(address), "inside.example"):
        asker.counted.stages.clear()
        url = {"url": f"https://{host}/v1/jobs"}
        result = await asker.run(polled(submit=url), retries=3)
        assert result.outcome is RunOutcome.DOWN
        assert result.msg == f"target_blocked {host.strip('[]')}"
        assert asker.counted.stages == [(Stage.SUBMIT, StageEnd.FAILED)]
    assert asker.queue.greeted == 0


@pytest.mark.parametrize("address", BEHIND)
@pytest.mark.parametrize("workflow", [polled(), streamed()], ids=["polling", "listening"])
async def test_redirects_to_addresses_that_are_not_global_are_blocked(
    asker: Asker, address: str, workflow: dict[str, Any]
) -> None:
    leads(asker.names, "inside.example", address)
    for host in (literal(address), "inside.example"):
        for path in ("/v1/jobs", "/v1/jobs/"):
            asker.queue.on = {path: moved(f"https://{host}/v1/jobs")}
            result = await asker.run(workflow)
            assert (result.outcome, result.msg) == (RunOutcome.DOWN, f"target_blocked {HOST}")
        asker.queue.on.clear()
        url = f"https://{host}/{CORRELATION}/state"
        elsewhere = {**workflow, "completion": {**workflow["completion"], "url": url}}
        result = await asker.run(elsewhere)
        assert result.msg == f"target_blocked {host.strip('[]')}"
    assert {asked.address for asked in asker.queue.asked} == {HERE}


async def test_only_the_allowed_addresses_of_a_name_are_used(asker: Asker) -> None:
    leads(asker.names, HOST, "10.0.0.1", "fd00::7", HERE, "64:ff9b::a00:1")
    assert (await asker.run(polled())).outcome is RunOutcome.UP
    assert {asked.address for asked in asker.queue.asked} == {HERE}


async def test_a_name_that_changes_to_a_private_address_is_blocked(asker: Asker) -> None:
    asker.names.records[HOST, "A"] = [[HERE], ["10.0.0.1"]]
    result = await asker.run(polled())
    assert result.msg == f"target_blocked {HOST}"
    assert asker.counted.stages[-1] == (Stage.AWAIT_RESULT, StageEnd.FAILED)
    assert [asked.address for asked in asker.queue.asked] == [HERE]


async def test_denied_networks_of_the_process_apply_to_canaries(asker: Asker) -> None:
    denying = probe_policy((ip_network(f"{HERE}/32"),))
    asker.prober = Prober(replace(asker.prober.reach, policy=denying))
    assert (await asker.run(polled())).msg == f"target_blocked {HOST}"
    assert asker.queue.greeted == 0


# Redirects.


@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/"])
@pytest.mark.parametrize("workflow", [polled(), streamed()], ids=["polling", "listening"])
async def test_a_redirect_out_of_https_is_refused(
    asker: Asker, workflow: dict[str, Any], path: str
) -> None:
    asker.queue.on[path] = moved(f"http://{HOST}/v1/jobs")
    result = await asker.run(workflow)
    assert (result.outcome, result.msg) == (RunOutcome.DOWN, f"target_blocked {HOST}")
    assert asker.queue.plain == 0


@pytest.mark.parametrize(("hops", "end"), [(3, RunOutcome.UP), (4, RunOutcome.DOWN)])
@pytest.mark.parametrize("stage", ["submit", "polling", "listening"])
async def test_at_most_three_redirects_are_followed(
    asker: Asker, hops: int, end: RunOutcome, stage: str
) -> None:
    last = {"submit": "/v1/jobs", "polling": "/x/state", "listening": "/x/events"}[stage]
    first = {"submit": "/hop0", "polling": "/v1/jobs/", "listening": "/v1/jobs/"}[stage]
    targets = [*(f"/hop{number}" for number in range(1, hops)), last]
    for path, target in zip([first, *targets[:-1]], targets, strict=True):
        asker.queue.on[path] = moved(target)
    asker.queue.on["/x/events"] = streaming(
        event("done", {"result": {"total": 1, "prefix": "canary-1"}})
    )
    if stage == "submit":
        result = await asker.run(polled(submit={"url": f"https://{HOST}/hop0"}))
    else:
        workflow = polled() if stage == "polling" else streamed()
        result = await asker.run({**workflow, "result": {**workflow["result"]}})
    if end is RunOutcome.DOWN:
        assert (result.msg, result.code) == (f"http_status {HOST}", 307)
    assert asker.queue.to(last)[-1:] == (asker.queue.asked[-1:] if end is RunOutcome.UP else [])


@pytest.mark.parametrize("away", [f"https://{OTHER}", f"https://{HOST}:8443"])
async def test_a_redirect_to_another_origin_drops_secret_headers(asker: Asker, away: str) -> None:
    asker.queue.on["/begin"] = moved(f"{away}/v1/jobs")
    result = await asker.run(polled(submit={"url": f"https://{HOST}/begin"}))
    assert result.outcome is RunOutcome.UP, result.msg
    begun, submitted, _ = asker.queue.asked
    assert begun.headers["authorization"] == KEY
    assert "authorization" not in submitted.headers
    assert KEY not in str(submitted.headers)
    assert submitted.headers["x-purpose"] == "canary"
    assert submitted.headers["idempotency-key"] == begun.headers["idempotency-key"]
    assert submitted.body == begun.body


async def test_a_redirect_to_another_origin_drops_a_secret_body(asker: Asker) -> None:
    asker.queue.on["/begin"] = moved(f"https://{OTHER}/v1/jobs")
    submit = {"url": f"https://{HOST}/begin", "body": {"note": f"with {KEY}"}}
    await asker.run(polled(submit=submit))
    begun, submitted, *_ = asker.queue.asked
    assert KEY.encode() in begun.body
    assert submitted.body == b""


async def test_dropped_secrets_are_not_restored_by_a_redirect_back(asker: Asker) -> None:
    asker.queue.on["/begin"] = moved(f"https://{OTHER}/between")
    asker.queue.on["/between"] = moved(f"https://{HOST}/v1/jobs")
    await asker.run(polled(submit={"url": f"https://{HOST}/begin"}))
    assert ["authorization" in asked.headers for asked in asker.queue.asked[:3]] == [
        True,
        False,
        False,
    ]


async def test_a_redirect_within_the_origin_keeps_secrets(asker: Asker) -> None:
    asker.queue.on["/begin"] = moved("/v1/jobs")
    await asker.run(polled(submit={"url": f"https://{HOST}:443/begin"}))
    assert [asked.headers["authorization"] for asked in asker.queue.asked[:2]] == [KEY, KEY]


@pytest.mark.parametrize("stage", ["polling", "listening"])
async def test_polling_and_streams_drop_secrets_at_another_origin(asker: Asker, stage: str) -> None:
    path = "/x/state" if stage == "polling" else "/x/events"
    asker.queue.on["/v1/jobs/"] = moved(f"https://{OTHER}{path}")
    said = event("done", {"result": {"total": 1, "prefix": "canary-1"}})
    asker.queue.on["/x/events"] = streaming(said)
    workflow = polled() if stage == "polling" else streamed()
    headers = [{"name": "x-API-key", "secret_ref": "key"}, {"name": "X-Plain", "value": "kept"}]
    workflow["completion"]["headers"] = headers
    await asker.run(workflow)
    (asked,) = asker.queue.to("/v1/jobs/")
    (away,) = asker.queue.to("/x/")
    assert asked.headers["x-api-key"] == KEY
    assert (away.address, away.headers["x-plain"]) == (THERE, "kept")
    assert KEY not in str(away.headers)


async def test_stages_of_different_origins_get_their_own_secrets(asker: Asker) -> None:
    url = f"https://{OTHER}/v1/jobs/{CORRELATION}/state"
    assert (await asker.run(polled(completion={"url": url}))).outcome is RunOutcome.UP
    assert [asked.address for asked in asker.queue.asked] == [HERE, THERE]
    assert asker.queue.asked[1].headers["x-api-key"] == KEY


async def test_only_declared_secrets_are_sent(asker: Asker) -> None:
    secrets = {"canary_secret_key": KEY, "canary_secret_other": "0ther", "password": "0ther"}
    assert (await asker.run(polled(), secrets=secrets)).outcome is RunOutcome.UP
    assert "0ther" not in str(asker.queue.asked)
