# ruff: noqa: T201
"""Repeats tests while other programs occupy every core, and counts the runs that failed.

    python -m tests.support.run.flaky N [pytest arguments]

Each run has a log of its own; the logs of failed runs are kept and named at the end.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# Two for each core: a test then gets a third of a core, as on a busy machine of CI.
_LOADS_PER_CORE: Final = 2
_RUN_SECONDS: Final = 3_600
_NO_TESTS: Final = 5


@contextmanager
def _busy_cores() -> Iterator[None]:
    loads = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"])
        for _ in range(_LOADS_PER_CORE * (os.cpu_count() or 1))
    ]
    try:
        yield
    finally:
        for load in loads:
            load.kill()
            load.wait()


def _run(arguments: list[str], log: Path) -> int:
    """Runs pytest once, in a new order of hash values, and returns its exit code."""
    with log.open("wb") as output:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--durations=3", *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=_RUN_SECONDS,
            check=False,
        ).returncode


def main() -> int:
    runs, arguments = int(sys.argv[1]), sys.argv[2:]
    folder = Path(tempfile.mkdtemp(prefix="leadline-flaky-"))
    failed: list[Path] = []
    with _busy_cores():
        for number in range(1, runs + 1):
            log = folder / f"run-{number}.log"
            code = _run(arguments, log)
            if code == _NO_TESTS:
                print(log.read_text())
                return 2
            if code == 0:
                log.unlink()
            else:
                failed.append(log)
            print(f"run {number} of {runs}: {'failed' if code else 'passed'}", flush=True)
    print(f"{len(failed)} of {runs} runs failed")
    for log in failed:
        print(log)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
