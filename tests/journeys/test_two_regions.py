"""A local and a remote region, while their link is cut, slowed and restored and processes are
killed: in the end every window has its verdict, and the figures equal those of a model.
"""

import base64
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trustme

from tests.support.peers.own_network import own_network
from tests.support.processes.daemon_process import LEADLINE, Daemon, daemon
from tests.support.processes.ports import free_port

from ..support.processes.link import NEAR, Link, Relay, Target, linked
from .conftest import await_results, eventually, project_of, status

pytestmark = [pytest.mark.needs("ip", "root")]
SEALING_KEY = base64.b64encode(b"k" * 32).decode()
TOKEN = "token-of-the-far-side-1234"
INTERVAL, TIMEOUT, HOLD = 5, 2, 90.0
# The longest time after its due instant at which a window gets its verdict, plus some time for the
# sealer.
SEALED_AFTER = TIMEOUT + 120 + 15


class Installation:
    def __init__(self, stack: ExitStack, dsn: str, folder: Path, link: Link) -> None:
        self.dsn, self.link = dsn, link
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(folder / "authority.pem"))
        certificate = authority.issue_cert(NEAR).private_key_and_cert_chain_pem
        certificate.write_to_path(str(folder / "server.pem"))
        common: dict[str, Any] = {
            "LEADLINE_DATABASE__DSN": dsn,
            "LEADLINE_DATABASE__POOL_SIZE": "6",
            "LEADLINE_SECURITY__ENCRYPTION_KEY": SEALING_KEY,
            "LEADLINE_SECURITY__ADMIN_EMAIL": "admin@localhost",
            "LEADLINE_SECURITY__ADMIN_PASSWORD": "correct-horse",
            "LEADLINE_PULL__TOKEN": TOKEN,
            "LEADLINE_PULL__REGIONS": '[{name="far"}]',
        }
        self.members: dict[str, Daemon] = {}
        for name in ("scheduler", "api", "worker", "worker2"):
            member = stack.enter_context(daemon(**common))
            member.password = "correct-horse"
            if name != "api":
                member.environment["LEADLINE_SERVER__OPS_LISTEN"] = f"127.0.0.1:{member.port}"
                member.environment["LEADLINE_SERVER__LISTEN"] = f"127.0.0.1:{free_port()}"
            self.members[name] = member
        self.relay = Relay(stack, self.api.port, folder / "server.pem")
        far: dict[str, Any] = {
            "LEADLINE_CA_FILE": str(folder / "authority.pem"),
            "LEADLINE_PULL__TOKEN": TOKEN,
            "LEADLINE_PULL__SERVER_URL": self.relay.url,
            "LEADLINE_PROBER__REGIONS": '["far"]',
        }
        self.agents = [stack.enter_context(daemon(**far)) for _ in range(2)]
        self.targets = {"core": Target(folder, None), "far": Target(folder, link)}
        for target in self.targets.values():
            stack.callback(target.stop)

    @property
    def api(self) -> Daemon:
        return self.members["api"]

    def start(self) -> None:
        for name, member in self.members.items():
            member.start(role=name.rstrip("2"))
        self.api.sign_in()
        self.begin(self.agents[1])

    def begin(self, agent: Daemon) -> None:
        agent.begin("agent", *self.link.beyond(LEADLINE))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def house(dsn: str, tmp_path: Path) -> Iterator[Installation]:
    with own_network(), linked(f"far-{free_port()}") as link, ExitStack() as stack:
        house = Installation(stack, dsn, tmp_path, link)
        house.start()
        yield house


def watched(house: Installation, project: str, region: str, count: int) -> list[str]:
    made = [
        house.api.api(
            "POST",
            f"/projects/{project}/monitors",
            {
                "name": f"{region} {n}",
                "type": "http",
                "region": region,
                "target": house.targets[region].url,
                "interval_seconds": INTERVAL,
                "timeout_seconds": TIMEOUT,
            },
        )
        for n in range(count)
    ]
    return [monitor["id"] for monitor in made]


@pytest.mark.soak
def test_every_window_has_its_verdict_after_cuts_and_kills(house: Installation) -> None:
    project = project_of(house.api)
    monitors = {region: watched(house, project, region, 4) for region in ("core", "far")}
    all_of_them = [uid for uids in monitors.values() for uid in uids]
    eventually(lambda: all(status(house.api, uid) == "up" for uid in all_of_them), 40)
    # An agent continues only with monitors that it has received: the remaining agent was connected
    # alone, so it knows all of them.
    house.begin(house.agents[0])
    eventually(lambda: '"is":"connected"' in house.agents[0].log.read_text(), 30)
    for uid in monitors["far"]:
        await_results(house.api, uid, 2)
    cut_at = time.time()
    house.link.cut()
    house.members["worker"].kill()
    time.sleep(20)
    house.targets["far"].says(503)
    house.members["scheduler"].kill()
    time.sleep(10)
    house.agents[0].kill()
    house.members["scheduler"].start(role="scheduler")
    time.sleep(10)
    house.targets["far"].says(200)
    time.sleep(10)
    house.link.heal()
    healed_at = time.time()
    house.begin(house.agents[0])
    house.members["worker"].start(role="worker")
    eventually(lambda: newest_is_recent(house, monitors["far"]), 60)

    house.relay.delay = 0.7
    time.sleep(15)
    house.relay.delay = 0.0
    time.sleep(5)
    ended_at = time.time()
    eventually(lambda: sealed_through(house) > ended_at, SEALED_AFTER)

    missed = assert_complete_verdicts(house, ended_at)
    # After the remaining agent noticed the cut, it ran all monitors itself.
    noticed = round(cut_off_at(house.agents[1], cut_at) - cut_at)
    unheard = sorted(round(at - cut_at) for region, at, _ in missed if region == "far")
    assert all(-10 < after <= noticed for after in unheard), (unheard, noticed)
    late = house.rows(
        "select count(*) from ledger r join monitors m on m.id = r.monitor"
        " join shards s on s.id = m.shard where s.region = 'far' and verdict = 'covered_late'"
        f" and due_at between to_timestamp({cut_at}) and to_timestamp({healed_at})"
    )
    assert late[0][0] > 10, "results of the time without a connection are stored"
    seen_down = house.rows(
        "select distinct m.uid::text from heartbeats h join monitors m on m.id = h.monitor"
        " where not h.up and h.msg like 'http_status%'"
    )
    assert {uid for (uid,) in seen_down} >= set(monitors["far"])
    for uid in all_of_them:
        figures_are_the_oracles(house, uid)


def cut_off_at(agent: Daemon, since: float) -> float:
    """Returns the time at which an agent first logged after `since` that it is cut off."""
    told = [json.loads(line) for line in agent.log.read_text().splitlines() if "cut_off" in line]
    return min(at for line in told if (at := seconds_of(line["ts"])) > since)


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def sealed_through(house: Installation) -> float:
    """Returns the time up to which every shard is sealed."""
    found = house.rows(
        f"select min(extract(epoch from settled_through)) - {TIMEOUT} - 120 from shards"
    )
    return float(found[0][0])


def newest_is_recent(house: Installation, monitors: list[str]) -> bool:
    newest = house.rows(
        "select m.uid::text, extract(epoch from now() - max(h.ts)) from heartbeats h"
        " join monitors m on m.id = h.monitor group by 1"
    )
    ages = dict(newest)
    return all(uid in ages and ages[uid] < 3 * INTERVAL for uid in monitors)


def assert_complete_verdicts(house: Installation, until: float) -> list[tuple[str, float, str]]:
    """Checks that each due window has one row. Returns region, due time and reason of the missed
    ones.
    """
    begun = house.rows(
        "select t.monitor, s.region, extract(epoch from t.anchor), extract(epoch from t.from_at)"
        " from monitor_terms t join shards s on s.id = t.shard"
    )
    found = Counter(
        (monitor, round(float(at), 3))
        for monitor, at in house.rows("select monitor, extract(epoch from due_at) from ledger")
    )
    assert max(found.values()) == 1
    for monitor, _, anchor, from_at in begun:
        due = float(anchor)
        while due <= until:
            if due > float(from_at):
                assert (monitor, round(due, 3)) in found, f"no verdict of {monitor} at {due}"
            due += INTERVAL
    rows = house.rows(
        "select s.region, extract(epoch from r.due_at), r.reason from ledger r"
        " join monitors m on m.id = r.monitor join shards s on s.id = m.shard"
        " where r.verdict = 'missed'"
    )
    assert all(reason for _, _, reason in rows)
    return [(region, float(at), reason) for region, at, reason in rows]


def figures_are_the_oracles(house: Installation, uid: str) -> None:
    """Compares the uptime with a model of the same results: each is valid until the next one, for
    at most HOLD seconds.
    """
    for _ in range(100):
        mark = watermark(house, uid)
        said = house.api.api("GET", f"/monitors/{uid}/availability?days=1")[-1]
        if watermark(house, uid) == mark:
            break
    rows = house.rows(
        "select extract(epoch from h.ts), h.up from heartbeats h join monitors m"
        f" on m.id = h.monitor where m.uid = '{uid}' order by 1"
    )
    beats = [(float(at), up) for at, up in rows]
    midnight = datetime.fromisoformat(said["day"]).timestamp()
    seconds = {True: 0.0, False: 0.0}
    for n, (at, up) in enumerate(beats):
        following = beats[n + 1][0] if n + 1 < len(beats) else float("inf")
        until = min(following, at + HOLD, mark)
        seconds[up] += max(until - max(at, midnight), 0.0)
    expected = 100 * seconds[True] / (seconds[True] + seconds[False])
    assert said["uptime_percent"] == pytest.approx(expected, abs=0.01), (uid, seconds)


def watermark(house: Installation, uid: str) -> float:
    """Returns the end of the monitor's figures, by the last completed sealing."""
    rows = house.rows(
        f"select extract(epoch from s.settled_through) - {TIMEOUT} - 120 from shards s"
        f" join monitors m on m.shard = s.id where m.uid = '{uid}'"
    )
    return float(rows[0][0])
