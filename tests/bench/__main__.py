"""python -m tests.bench [name …]: figures and ratios; nothing here passes or fails."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from .load import on_rate

BENCHES: dict[str, Callable[[], dict[str, Any]]] = {
    "checks-50": lambda: on_rate(1_500, 30, 40),
    "checks-333": lambda: on_rate(10_000, 30, 60),
    # The store's cost alone is what grows with the batch; profile with py-spy record -p PID.
    "checks-1000": lambda: on_rate(30_000, 30, 60),
}


def main() -> None:
    for name in sys.argv[1:] or BENCHES:
        began = time.monotonic()
        figures = BENCHES[name]()
        sys.stdout.write(f"{name} ({time.monotonic() - began:.0f} s)\n")
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
        sys.stdout.flush()


main()
