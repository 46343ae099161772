"""The time from the command to readiness, for the first and a later start, and the memory of an
idle daemon."""

import time
from typing import Any

from leadline.storage.engine.pools import SPARE_SECONDS

from ..support.processes.daemon_process import daemon
from .usage import cpu_seconds, memory_mib, transactions

STARTS = 3
IDLE_SECONDS = 60.0


def starts() -> dict[str, Any]:
    cold, warm = [], []
    for _ in range(STARTS):
        with daemon(on_disk=True) as running:
            cold.append(round(running.start(), 2))
            running.stop()
            warm.append(round(running.start(), 2))
            stop = round(running.stop(), 2)
    return {"cold_s": cold, "warm_s": warm, "stop_s": stop}


def idle() -> dict[str, Any]:
    with daemon(on_disk=True) as running:
        running.start()
        running.stop()
        running.start()
        # The start opens connections that an idle process closes again.
        time.sleep(1.5 * SPARE_SECONDS)
        begun, before = transactions(running), cpu_seconds(running)
        time.sleep(IDLE_SECONDS)
        after = cpu_seconds(running)
        cores = {who: round((after[who] - before[who]) / IDLE_SECONDS, 4) for who in after}
        made = transactions(running) - begun
        return {
            **memory_mib(running),
            "cores": cores,
            "transactions_a_second": round(made.total() / IDLE_SECONDS, 2),
            "transactions": dict(made),
        }
