"""python -m tests.bench [name …]: figures and ratios; nothing here passes or fails."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from . import api, disk, pushes, starts
from .checks import at_rate
from .kinds import kinds
from .loop import loop

BENCHES: dict[str, Callable[[], dict[str, Any]]] = {
    "starts": starts.starts,
    "idle": starts.idle,
    "kinds": kinds,
    "loop": loop,
    "checks-50": at_rate(1_500, 40),
    "checks-333": at_rate(10_000, 60),
    "checks-1000": at_rate(30_000, 60),
    "checks-1500": at_rate(45_000, 60),
    "checks-full": at_rate(60_000, 60),
    "tls-50": at_rate(1_500, 40, tls=True),
    "tls-333": at_rate(10_000, 60, tls=True),
    "tls-full": at_rate(20_000, 60, tls=True),
    "push": pushes.one_process,
    "push-two": pushes.two_processes,
    "alarms": pushes.alarms,
    "api": api.reads,
    "disk": disk.million,
}


def main() -> None:
    for name in sys.argv[1:] or BENCHES:
        began = time.monotonic()
        figures = BENCHES[name]()
        sys.stdout.write(f"{name} ({time.monotonic() - began:.0f} s)\n")
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
        sys.stdout.flush()


main()
