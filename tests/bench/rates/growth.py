"""Growth: the cost of a check among more monitors, and 50 000 monitors of ten organizations on
processes of their own: rate, screens, an absence of five minutes, and one that misbehaves.

The processes use the PostgreSQL of the machine. Its CPU time is that of all its processes, so
nothing else may use it meanwhile."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from ...support.processes.daemon_process import Daemon, daemon
from ..client import _at
from ..hostile import HOST, _peers, _project
from ..pushes import _database, _process
from ..seed import add_monitors
from ..target import nginx
from ..usage import _tree, cpu_seconds, memory_mib, per_thousand, process_seconds
from .checks import LATE_MS, _first_round, _seen, _stored
from .split import _environment, _own

COUNTS = (100, 1_000, 5_000, 20_000, 50_000)
CHECKS_A_SECOND = 20
WARM_SECONDS = 30.0
COST_SECONDS = 90.0
ORGANIZATIONS = 10
EACH = 5_000
INTERVAL_SECONDS = 60
WORKERS = 2
ABSENCE_SECONDS = 300.0
READS = 60
Figures = dict[str, Any]

# The delay of the runs of all organizations but the first one that was made.
_OF_OTHERS = f"""
select percentile_disc(array[0.5, 0.99, 1]) within group (order by late)::float8[]
from (select {LATE_MS} as late
  from heartbeats h join monitors m on m.org = h.org and m.id = h.monitor
  where h.ts > to_timestamp(%(since)s) and m.slug not like 'o0-%%' and h.monitor %% 10 = 1) x
"""
_VERDICTS_OF_OTHERS = """
select concat_ws(' ', r.verdict, r.reason), count(*)
from ledger r join monitors m on m.org = r.org and m.id = r.monitor
where r.due_at > to_timestamp(%(since)s) and r.due_at <= to_timestamp(%(until)s)
  and m.slug not like 'o0-%%'
group by 1
"""


def growth() -> Figures:
    return {f"monitors_{count}": _cost_among(count) for count in COUNTS}


def _cost_among(count: int) -> Figures:
    """The cost of a check at a constant rate, with states that a first round has left."""
    with nginx() as target, daemon(on_disk=True, LEADLINE_LOG__LEVEL="warning") as running:
        running.start()
        interval = count // CHECKS_A_SECOND
        add_monitors(running.dsn, count, target=target.plain, interval_seconds=interval)
        with psycopg.connect(running.dsn, autocommit=True) as connection:
            connection.execute("update monitor_states set status = 'up'")
            connection.execute("vacuum analyze")
        time.sleep(WARM_SECONDS)
        before, stored, began = cpu_seconds(running), _stored(running.dsn), time.time()
        time.sleep(COST_SECONDS)
        made = _stored(running.dsn) - stored
        spent = per_thousand(before, cpu_seconds(running), made)
        return {
            "stored_a_second": round(made / (time.time() - began), 1),
            "cpu_s_per_1000": spent,
            **memory_mib(running),
        }


@dataclass(slots=True)
class Installation:
    dsn: str
    environment: dict[str, str]
    roles: dict[str, Daemon]
    projects: list[str]

    def spent(self) -> dict[str, float]:
        return {name: _own(one) for name, one in self.roles.items()} | {
            "postgres": _postgres_seconds()
        }


@contextmanager
def _installation(targets: list[str]) -> Iterator[Installation]:
    """An organization with EACH monitors for every target, on an api, a scheduler and workers."""
    with _database() as dsn, ExitStack() as stack:
        environment = _environment(dsn)
        roles = {"api": stack.enter_context(_process("api", environment))}
        roles["api"].sign_in()
        projects = [_project(roles["api"], f"o{n}") for n in range(len(targets))]
        with _checking(environment) as checking:
            made = Installation(dsn, environment, roles | checking, projects)
            for number, target in enumerate(targets):
                add_monitors(
                    dsn,
                    EACH,
                    target=target,
                    interval_seconds=INTERVAL_SECONDS,
                    slug=f"o{number}-",
                    project=projects[number],
                )
            yield made


@contextmanager
def _checking(environment: dict[str, str]) -> Iterator[dict[str, Daemon]]:
    with ExitStack() as stack:
        roles = {"scheduler": stack.enter_context(_process("scheduler", environment))}
        for number in range(WORKERS):
            roles[f"worker {number}"] = stack.enter_context(_process("worker", environment))
        yield roles


def fifty_thousand() -> Figures:
    with nginx() as target, _installation([target.plain] * ORGANIZATIONS) as made:
        count = EACH * ORGANIZATIONS
        first = _first_round(made.dsn, count, 3.0 * INTERVAL_SECONDS)
        time.sleep(WARM_SECONDS)
        began, before, stored = time.time(), made.spent(), _stored(made.dsn)
        time.sleep(INTERVAL_SECONDS)
        took, after = time.time() - began, made.spent()
        stored = _stored(made.dsn) - stored
        return {
            "monitors": count,
            "first_round_s": first,
            "due_a_second": round(count / INTERVAL_SECONDS, 1),
            "stored_a_second": round(stored / took, 1),
            "cores": {name: round((after[name] - before[name]) / took, 3) for name in after},
            "pss_mib": {name: memory_mib(one)["pss_mib"] for name, one in made.roles.items()},
            **_seen(made.dsn, began),
            "answers_ms_p50_p99": _answers(made.roles["api"], made.projects[0]),
        }


def absence() -> Figures:
    """No scheduler and no worker for five minutes, then both."""
    with nginx() as target, _database() as dsn:
        environment = _environment(dsn)
        with _process("api", environment), _checking(environment):
            add_monitors(
                dsn,
                EACH * ORGANIZATIONS,
                target=target.plain,
                interval_seconds=INTERVAL_SECONDS,
            )
            _first_round(dsn, EACH * ORGANIZATIONS, 3.0 * INTERVAL_SECONDS)
            time.sleep(WARM_SECONDS)
        left = time.time()
        time.sleep(ABSENCE_SECONDS)
        with _process("api", environment), _checking(environment):
            back = time.time()
            time.sleep(2 * INTERVAL_SECONDS)
            later = time.time()
            time.sleep(INTERVAL_SECONDS)
            return {
                "first_result_after_s": round(_first_after(dsn, back) - back, 1),
                "first_two_minutes": _seen(dsn, back),
                "third_minute": _seen(dsn, later),
                "windows_of_the_absence": _verdicts(dsn, left, back),
            }


def _first_after(dsn: str, since: float) -> float:
    with psycopg.connect(dsn) as connection:
        found = connection.execute(
            "select extract(epoch from min(ts))::float8 from heartbeats"
            " where ts > to_timestamp(%s)",
            (since,),
        ).fetchone()
    return float(found[0]) if found and found[0] is not None else float("inf")


def _verdicts(dsn: str, since: float, until: float) -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        given = {"since": since, "until": until}
        return dict(connection.execute(_VERDICTS_OF_OTHERS, given).fetchall())


def neighbours() -> Figures:
    """Nine organizations, next to one with usual, costly or silent targets."""
    with _peers(niceness=19) as (ports, _), nginx() as target, _silent() as silent:
        kinds = {
            "usual": target.plain,
            "costly": f"http://{HOST}:{ports['chunks']}/",
            "silent": f"http://{HOST}:{silent}/",
        }
        return {name: _beside(target.plain, first) for name, first in kinds.items()}


def _beside(plain: str, first: str) -> Figures:
    with _installation([first, *[plain] * (ORGANIZATIONS - 1)]) as made:
        # Their first round, whose runs are late beside costly ones, and the time to make up for it.
        time.sleep(3 * INTERVAL_SECONDS)
        began = time.time()
        time.sleep(INTERVAL_SECONDS)
        until = time.time()
        time.sleep(INTERVAL_SECONDS / 2)
        with psycopg.connect(made.dsn) as connection:
            late = connection.execute(_OF_OTHERS, {"since": began}).fetchone()
        return {
            "start_late_ms_p50_p99_max": [round(ms, 1) for ms in late[0] or []] if late else [],
            "verdicts": _verdicts(made.dsn, began, until),
        }


@contextmanager
def _silent() -> Iterator[int]:
    """A server that accepts connections and never answers."""
    with socket.create_server((HOST, 0), backlog=4096) as server:
        kept: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return
                while len(kept) > EACH:
                    kept.pop(0).close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        for one in kept:
            one.close()


def _answers(api: Daemon, project: str) -> dict[str, list[float]]:
    monitor = api.api("GET", f"/projects/{project}/monitors?limit=1")[0]["id"]
    here = f"/projects/{project}"
    paths = {
        "overview": here,
        "monitors": f"{here}/monitors",
        "monitors found by text": f"{here}/monitors?q=bench+19",
        "monitor": f"/monitors/{monitor}",
        "API, page of 100": f"/api/v1/projects/{project}/monitors?limit=100",
        "API, all 5 000": f"/api/v1/projects/{project}/monitors",
        "API, 100 heartbeats": f"/api/v1/monitors/{monitor}/heartbeats?limit=100",
    }
    return {name: _quantiles(_timed(api, path)) for name, path in paths.items()}


def _timed(api: Daemon, path: str) -> Callable[[], float]:
    def timed() -> float:
        began = time.perf_counter()
        api.raw("GET", path)
        return time.perf_counter() - began

    return timed


def _quantiles(timed: Callable[[], float]) -> list[float]:
    timed()
    took = sorted(timed() for _ in range(READS))
    return [round(_at(took, part) * 1000, 1) for part in (0.5, 0.99)]


def _postgres_seconds() -> float:
    return sum(process_seconds(pid) for pid, name in _tree(1) if name == "postgres")
