"""Runs flake8-async on each product file with async code that has changed since it last passed.

Usage: python -m tests.house.async_lint [option of flake8-async]...
"""

import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from tests.house.sources import ROOT, files, ident

# One digest in each line: of a file that passed, and of everything else its result depends on.
PASSED: Final = ROOT / ".check_cache" / "flake8-async"
# A file without any of these words has no async code; flake8-async needs 0.3 s for each file.
ASYNC_CODE: Final = re.compile(rb"async|await|trio")
PROCESSES: Final = 2
# An interrupted or crashed run loses the results of one batch per process.
BATCH_FILES: Final = 24


def digest(path: Path, options: list[str]) -> str:
    """Returns a digest of all that decides the findings in a file."""
    tools = [version("flake8-async"), version("libcst"), platform.python_version()]
    return hashlib.sha256(
        "\0".join([*tools, *options, ""]).encode() + path.read_bytes()
    ).hexdigest()


def read_passed() -> set[str]:
    """Returns the digests of earlier passes."""
    return set(PASSED.read_text().split()) if PASSED.exists() else set()


def write_passed(digests: Iterable[str]) -> None:
    """Replaces the file of digests, in one step because another `make check` may read it."""
    PASSED.parent.mkdir(exist_ok=True)
    new = PASSED.with_name(f"{PASSED.name}.{os.getpid()}")
    new.write_text("".join(f"{each}\n" for each in sorted(digests)))
    new.replace(PASSED)


def check(batch: list[Path], options: list[str]) -> tuple[bool, str, set[Path]]:
    """Runs flake8-async; returns whether all files passed, the output, and the passed files."""
    command = [str(Path(sys.executable).with_name("flake8-async")), *options, *map(ident, batch)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode == 0:
        return True, run.stdout + run.stderr, set(batch)
    found = {path for path in batch if f"\n{ident(path)}:" in f"\n{run.stdout}"}
    # flake8-async exits with 1 for findings and for a crash, which leaves later files unchecked.
    crashed = run.returncode != 1 or bool(run.stderr) or not found
    return False, run.stdout + run.stderr, set() if crashed else set(batch) - found


def main(options: list[str]) -> int:
    """Checks the changed files, prints the findings, and returns the exit status."""
    candidates = [path for path in files() if ASYNC_CODE.search(path.read_bytes())]
    digests = {path: digest(path, options) for path in candidates}
    earlier = read_passed()
    passed = {each for each in digests.values() if each in earlier}
    changed = [path for path, each in digests.items() if each not in passed]
    batches = [changed[at : at + BATCH_FILES] for at in range(0, len(changed), BATCH_FILES)]
    all_passed = True
    with ThreadPoolExecutor(PROCESSES) as pool:
        for succeeded, output, good in pool.map(partial(check, options=options), batches):
            all_passed &= succeeded
            sys.stdout.write(output)
            # A file that was edited during the run may have passed with another content.
            passed |= {digests[path] for path in good if digest(path, options) == digests[path]}
            write_passed(passed)
    sys.stdout.write(f"flake8-async: {len(changed)} of {len(candidates)} files checked\n")
    return 0 if all_passed else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
