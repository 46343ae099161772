"""The rate of checks with all of their CPU time: scheduling, probing, storing, PostgreSQL.

A daemon checks a local nginx, whose CPU time is not counted. The start deviation is the stored
instant minus the due instant of the ledger. Peers do the same checks in the same run."""

import time
from collections.abc import Callable
from typing import Any, Final

import psycopg

from ...support.processes.daemon_process import Daemon, daemon
from ..seed import add_monitors
from ..target import nginx
from ..usage import cpu_seconds, memory_mib, per_thousand, transactions
from .rate_peers import peers_at_rate

INTERVAL_SECONDS = 30
Figures = dict[str, Any]

# The delay of a run after its due instant in milliseconds, of the result `h`. The row of a result
# can contain it. For others the newest window before them is looked up, in a range that is longer
# than the longest interval of a bench.
LATE_MS: Final = """coalesce(h.after_due_us / 1000.0, extract(epoch from h.ts - (
  select max(r.due_at) from ledger r
  where r.org = h.org and r.monitor = h.monitor and r.due_at <= h.ts
    and r.at > h.ts - interval '1 hour' and r.at <= h.ts + interval '1 minute')) * 1000)"""


def at_rate(
    count: int, seconds: float, *, tls: bool = False, beside: bool = False
) -> Callable[[], Figures]:
    """Measures `count` monitors with an interval of 30 s for `seconds`, after a first round.

    `beside` also measures the peers, one after the other.
    """

    def bench() -> Figures:
        with nginx() as target:
            environment = {"LEADLINE_LOG__LEVEL": "warning", "SSL_CERT_FILE": target.authority}
            with daemon(on_disk=True, **environment) as running:
                running.start()
                figures = _watched(running, target.tls if tls else target.plain, count, seconds)
            if beside:
                peers = peers_at_rate(target.plain, count, INTERVAL_SECONDS, seconds)
                ours = figures["cpu_s_per_1000"]["all"]
                figures["peers_cpu_s_per_1000"] = peers
                figures["ratios"] = {name: round(ours / spent, 2) for name, spent in peers.items()}
            return figures

    return bench


def _watched(running: Daemon, target: str, count: int, seconds: float) -> Figures:
    add_monitors(running.dsn, count, target=target, interval_seconds=INTERVAL_SECONDS)
    first = _first_round(running.dsn, count, INTERVAL_SECONDS * 3.0)
    # A changing write takes a lock. From the second round on, all writes are steady.
    time.sleep(5)
    began, before, begun = time.time(), cpu_seconds(running), transactions(running)
    stored_before = _stored(running.dsn)
    time.sleep(seconds)
    after, took = cpu_seconds(running), time.time() - began
    stored = _stored(running.dsn) - stored_before
    made = transactions(running) - begun
    return {
        "monitors": count,
        "due_a_second": round(count / INTERVAL_SECONDS, 1),
        "stored_a_second": round(stored / took, 1),
        "cpu_s_per_1000": per_thousand(before, after, stored),
        "transactions_per_1000": round(made.total() * 1000 / max(stored, 1), 1),
        "transactions": dict(made),
        "first_round_s": first,
        **_seen(running.dsn, began),
        **memory_mib(running),
    }


def _stored(dsn: str) -> int:
    return int(_one(dsn, "select count(*) from heartbeats"))


def _first_round(dsn: str, count: int, most_seconds: float) -> float:
    began = time.monotonic()
    while time.monotonic() - began < most_seconds:
        if _one(dsn, "select count(*) from monitor_states where status = 'pending'") == 0:
            break
        time.sleep(0.5)
    return round(time.monotonic() - began, 1)


def _seen(dsn: str, since: float) -> Figures:
    """The delay of the runs, the reported latency, and the verdicts of the windows."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        late = connection.execute(
            "select percentile_disc(array[0.5, 0.99, 1]) within group (order by late)::float8[]"
            f" from (select {LATE_MS} as late"
            " from heartbeats h where h.ts > to_timestamp(%s) and h.monitor %% 10 = 1) x",
            (since,),
        ).fetchone()
        latency = connection.execute(
            "select percentile_disc(array[0.5, 0.9, 0.99, 1]) within group (order by"
            " coalesce(dns_us, 0) + coalesce(connect_us, 0) + coalesce(tls_us, 0)"
            " + coalesce(first_byte_us, 0)) from heartbeats where ts > to_timestamp(%s)",
            (since,),
        ).fetchone()
    return {
        "start_late_ms_p50_p99_max": [round(ms, 1) for ms in late[0] or []] if late else [],
        "latency_ms_p50_p90_p99_max": (
            [round(us / 1000, 2) for us in latency[0] or []] if latency else []
        ),
        "verdicts": _verdicts(dsn, since),
    }


def _verdicts(dsn: str, since: float) -> dict[str, int]:
    with psycopg.connect(dsn) as connection:
        return dict(
            connection.execute(
                "select concat_ws(' ', verdict, reason), count(*) from ledger"
                " where due_at > to_timestamp(%s) group by 1",
                (since,),
            ).fetchall()
        )


def _one(dsn: str, query: str) -> Any:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None
