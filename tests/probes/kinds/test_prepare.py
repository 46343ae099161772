"""A library is loaded before the deadline of the run begins, once per process."""

import math
from types import SimpleNamespace

import pytest
import trio

from leadline.probes import runner
from leadline.probes.check.check import make_check
from leadline.probes.check.condition_evaluation import ProbeValues
from leadline.probes.check.observation import Observation
from leadline.probes.kinds import ssh
from leadline.probes.probe_kind import prepare
from tests.support.peers.servers import Prober


async def test_the_deadline_begins_after_the_preparation(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines: list[float] = []

    async def record(*_: object) -> Observation:
        deadlines.append(trio.current_effective_deadline())
        return Observation(ProbeValues(connected=True))

    kind = SimpleNamespace(prepare=record, probe=record)
    monkeypatch.setattr(runner, "kind_of", lambda _: kind)
    await prober.check("tcp", "127.0.0.1:1", timeout_seconds=50)
    async with trio.open_nursery():
        own = trio.current_effective_deadline()
    assert deadlines[0] == own
    assert deadlines[1] < math.inf


@pytest.mark.parametrize(
    ("config", "imports"),
    [({}, []), ({"host_key_sha256": "SHA256:" + "a" * 43}, ["absent"])],
)
async def test_the_ssh_library_is_loaded_if_a_check_needs_it(
    monkeypatch: pytest.MonkeyPatch, config: dict[str, str], imports: list[str]
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(ssh, "_SESSION", "absent")
    monkeypatch.setattr(ssh, "import_module", loaded.append)
    await prepare(ssh, make_check("ssh", "example.com", None, config, ()))
    assert loaded == imports
    monkeypatch.setattr(ssh, "_SESSION", "trio")
    await prepare(ssh, make_check("ssh", "example.com", None, config, ()))
    assert loaded == imports
