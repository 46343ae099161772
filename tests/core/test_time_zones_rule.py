"""Time zones are those of the package tzdata, not those of the host."""

import os
import subprocess
import sys
from pathlib import Path
from zoneinfo import ZoneInfo

from leadline.storage.core.instant import is_timezone, zone_names

# A zone file of version 1: one type with an offset of 5 h, without transitions.
_FIVE_HOURS = (
    b"TZif" + bytes(16) + bytes(15) + b"\1" + bytes(3) + b"\1" + bytes(3) + b"\4"
    + (5 * 3600).to_bytes(4, "big") + bytes(2) + b"ABC\0"
)  # fmt: skip
_ASK = """
from datetime import datetime
from zoneinfo import ZoneInfo
from leadline.storage.core.instant import is_timezone
print(is_timezone("Mars/Base"), datetime(2026, 1, 5, tzinfo=ZoneInfo("Europe/Berlin")).utcoffset())
"""


def ask(zones: Path) -> str:
    environ = {**os.environ, "PYTHONTZPATH": str(zones)}
    command = [sys.executable, "-c", _ASK]
    return subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout


def test_the_zones_of_the_host_have_no_effect(tmp_path: Path) -> None:
    for name in ("Mars/Base", "Europe/Berlin"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(_FIVE_HOURS)
    assert ask(tmp_path).split() == ["False", "1:00:00"]


def test_every_zone_can_be_loaded() -> None:
    assert {"UTC", "Europe/Berlin", "America/New_York"} <= zone_names()
    assert [name for name in zone_names() if str(ZoneInfo(name)) != name] == []
    assert not is_timezone("Factory")
