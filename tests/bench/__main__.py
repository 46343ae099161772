"""`python -m tests.bench [name …]` prints figures and ratios. No benchmark passes or fails."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from . import api, disk, pushes, starts
from .changes import changes_10_000
from .console import console
from .delivery.oncall import oncall
from .delivery.outbox import outbox
from .delivery.subscribers import subscribers
from .delivery.time_to_notify import time_to_notify
from .edits import edits
from .gate import gate_90_days, gate_refused
from .history import history
from .hostile import hostile
from .kinds import kinds
from .lists import lists
from .loop import loop
from .packing import packing
from .pages import pages
from .rates.checks import at_rate
from .rates.growth import absence, fifty_thousand, growth, neighbours
from .rates.hour import hour
from .rates.split import claims, idle_agents, with_workers
from .services import services_90_days
from .signins import credentials, signins

BENCHES: dict[str, Callable[[], dict[str, Any]]] = {
    "starts": starts.starts,
    "idle": starts.idle,
    "kinds": kinds,
    "loop": loop,
    "hostile": hostile,
    "hour": hour,
    "checks-50": at_rate(1_500, 40, beside=True),
    "checks-333": at_rate(10_000, 60, beside=True),
    "checks-1000": at_rate(30_000, 60),
    "checks-1500": at_rate(45_000, 60),
    "checks-full": at_rate(60_000, 60),
    "tls-50": at_rate(1_500, 40, tls=True),
    "tls-333": at_rate(10_000, 60, tls=True),
    "tls-full": at_rate(20_000, 60, tls=True),
    "split-60000": with_workers(1, 60_000),
    "split-90000": with_workers(2, 90_000),
    "workers-1": with_workers(1, 150_000),
    "workers-2": with_workers(2, 150_000),
    "workers-3": with_workers(3, 150_000),
    "growth": growth,
    "growth-50000": fifty_thousand,
    "growth-absence": absence,
    "growth-neighbours": neighbours,
    "claims": claims,
    "idle-agents": idle_agents,
    "push": pushes.one_process,
    "push-two": pushes.two_processes,
    "alarms": pushes.alarms,
    "notify": time_to_notify,
    "outbox": outbox,
    "oncall": oncall,
    "api": api.reads,
    "lists": lists,
    "credentials": credentials,
    "signins": signins,
    "services": services_90_days,
    "gate": gate_90_days,
    "gate-refused": gate_refused,
    "changes": changes_10_000,
    "console": console,
    "pages": pages,
    "subscribers": subscribers,
    "disk": disk.million,
    "packing": packing,
    "history": history,
    "edits": edits,
}


def main() -> None:
    for name in sys.argv[1:] or BENCHES:
        began = time.monotonic()
        figures = BENCHES[name]()
        sys.stdout.write(f"{name} ({time.monotonic() - began:.0f} s)\n")
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
        sys.stdout.flush()


main()
