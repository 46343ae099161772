"""A folder in memory for the files of servers: a database has about six hundred of them."""

import shutil
from pathlib import Path

# The free memory in bytes below which the files are on disk.
LEAST = 3 << 30


def in_memory() -> str | None:
    """Returns a folder in memory for temporary files; None (the default folder) if memory
    is short.
    """
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > LEAST
    return str(memory) if roomy else None
