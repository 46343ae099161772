"""The commands of the tutorial, in their order, against a new installation."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.processes.daemon_process import LEADLINE, daemon
from tests.support.processes.documented_commands import all_blocks

PAGE = "tutorial/first-steps.md"
VARIABLES = "export A=http://127.0.0.1:8080/api/v1 PASSWORD=4GmDq0yTzMe1Kx9Lr2Vw\n"


@pytest.mark.needs("curl")
def test_the_commands_of_the_tutorial_end_as_the_page_describes(tmp_path: Path) -> None:
    (tmp_path / ".venv").symlink_to(Path(LEADLINE).parents[1])
    first, *rest = all_blocks(PAGE)
    assert first == VARIABLES
    with daemon() as leadline:
        leadline.start()
        variables = f"export A={leadline.url}/api/v1 PASSWORD={leadline.password}\n"
        # Separates the outputs of the blocks.
        script = "\necho; echo ---\n".join([variables, *rest])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    assert done.returncode == 0, done.stdout + done.stderr
    _, _, _, _, result, pushed, service, page, gate, change = re.split(
        r"^---$", done.stdout, flags=re.MULTILINE
    )
    assert '"up":true' in result
    assert '{"ok":true' in pushed
    assert '"nothing_sealed"' in service
    assert '"slug":"harbour"' in page
    assert "UNKNOWN" in gate
    assert change.strip()
    # The cookie file of the session was deleted.
    assert [path.name for path in tmp_path.iterdir()] == [".venv"]
