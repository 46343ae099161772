"""What a process of Leadline does not import: an import costs every start CPU and memory."""

import subprocess
import sys

import pytest

COMMAND_LINE_OF_HTTPX = {"rich", "pygments"}


@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("leadline.daemon.agent.agent_main", COMMAND_LINE_OF_HTTPX),
        # The client of `gate check`, `change record` and the other commands that use the API.
        (
            "leadline.daemon.cli.api_client",
            {
                *COMMAND_LINE_OF_HTTPX,
                *("cryptography", "dns.message", "psycopg", "leadline.probes.senders.deliver"),
            },
        ),
    ],
)
def test_a_process_does_not_import(module: str, others: set[str]) -> None:
    code = f"import sys, {module}; print('httpx' in sys.modules, *sys.modules)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert found[0] == "True"
    assert others & set(found) == set()
