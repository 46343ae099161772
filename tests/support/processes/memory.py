"""Where files of servers cost no disk: a database is some six hundred of them."""

import shutil
from pathlib import Path

# Of memory, below which they go to the disk.
LEAST = 3 << 30


def in_memory() -> str | None:
    """A folder for temporary ones; None for the usual place where memory has no room."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > LEAST
    return str(memory) if roomy else None
