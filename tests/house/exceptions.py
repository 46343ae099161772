"""The violations of the order that are known. The list may only become shorter.

`LEADLINE_WRITE_EXCEPTIONS=1 pytest tests/house/test_order.py tests/house/test_folders.py` writes
the list again, for example after a file has moved.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("exceptions.txt")


def check(rule: str, found: Iterable[str]) -> None:
    """Fails with each violation of a rule that is not in the list, and each entry that is stale."""
    violations = set(found)
    if os.environ.get("LEADLINE_WRITE_EXCEPTIONS") == "1":
        _write(rule, violations)
        return
    known = _read().get(rule, set())
    new = sorted(violations - known)
    stale = sorted(known - violations)
    assert not new, f"{rule}:\n" + "\n".join(new)
    assert not stale, f"{rule}: remove from {FILE.name}:\n" + "\n".join(stale)


def _read() -> dict[str, set[str]]:
    known: dict[str, set[str]] = {}
    for line in FILE.read_text().splitlines():
        rule, _, violation = line.partition("\t")
        known.setdefault(rule, set()).add(violation)
    return known


def _write(rule: str, violations: set[str]) -> None:
    known = {**_read(), rule: violations}
    lines = sorted(f"{name}\t{entry}\n" for name, entries in known.items() for entry in entries)
    FILE.write_text("".join(lines))
