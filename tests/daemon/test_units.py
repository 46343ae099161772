"""The systemd units: no misspelt key, and little access to the machine."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from leadline.daemon.runtime import limits

UNITS = Path(__file__).parents[2] / "systemd"
# The exposure that systemd-analyze reports, from 0 to 10.
EXPOSURE_MOST = 2.0
# A timer starts this unit, and each run ends without a stop.
ONESHOT = {"leadline-backup.service"}


def names() -> list[str]:
    return sorted(path.name for path in UNITS.glob("*.service"))


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("name", names())
def test_systemd_analyze_verify_prints_no_message(name: str, tmp_path: Path) -> None:
    """systemd-analyze exits with 0 for an unknown key, so the test requires an empty output."""
    program = shutil.which("true")
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={program}", (UNITS / name).read_text(), flags=re.M)
    unit = tmp_path / name.replace("@.", "@api.")
    unit.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert (done.stdout + done.stderr, done.returncode) == ("", 0)


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("name", names())
def test_the_service_sees_little_of_the_machine(name: str) -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(UNITS / name)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level[^:]*: ([0-9.]+)", done.stdout)
    assert found, done.stdout + done.stderr
    assert float(found[1]) < EXPOSURE_MOST


@pytest.mark.parametrize("name", [name for name in names() if name not in ONESHOT])
def test_the_unit_waits_for_readiness_and_for_signs_of_life(name: str) -> None:
    text = (UNITS / name).read_text()
    assert "Type=notify" in text
    assert "WatchdogSec=" in text
    assert "Restart=always" in text


@pytest.mark.parametrize("name", ["leadline.service", "leadline@.service"])
def test_a_start_that_waits_asks_for_as_long_as_the_unit_gives_it(name: str) -> None:
    text = (UNITS / name).read_text()
    assert f"TimeoutStartSec={limits.START_EXTENSION_SECONDS}\n" in text
    assert limits.START_EXTENSION_PAUSE_SECONDS < limits.START_EXTENSION_SECONDS / 2
