"""What a process of Leadline does not import."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module", ["leadline.daemon.agent.agent_main", "leadline.daemon.process.daemon_main"]
)
def test_httpx_brings_no_command_line(module: str) -> None:
    code = f"import sys, {module}; print('httpx' in sys.modules, *sys.modules)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert found[0] == "True"
    assert {"rich", "pygments"} & set(found) == set()
