"""The source distribution, the wheel and the bill of materials are complete and reproducible."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

pytestmark = [pytest.mark.soak]


def _build(to: Path) -> dict[str, Path]:
    """Returns the files that `make dist` builds, by their suffix."""
    subprocess.run(
        [sys.executable, "packaging/build_dist.py", "--to", to], cwd=ROOT, check=True, text=True
    )
    return {"".join(path.suffixes[-2:]): path for path in to.iterdir()}


def test_two_builds_are_equal_and_the_bill_lists_every_library(tmp_path: Path) -> None:
    first, second = _build(tmp_path / "first"), _build(tmp_path / "second")
    assert [path.name for path in sorted(first.values())] == [
        "leadline-0.3.8-py3-none-any.whl",
        "leadline-0.3.8.cdx.json",
        "leadline-0.3.8.tar.gz",
    ]
    assert {kind: _digest(path) for kind, path in first.items()} == {
        kind: _digest(path) for kind, path in second.items()
    }
    (bill,) = [json.loads(path.read_text()) for path in first.values() if path.suffix == ".json"]
    listed = {(one["name"].lower(), one["version"]) for one in bill["components"]}
    lock = (ROOT / "requirements/runtime.lock").read_text()
    locked = re.findall(r"^([a-z0-9_.-]+)==([^ ;]+)", lock, re.MULTILINE)
    assert len(locked) > 30
    assert listed == set(locked)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
