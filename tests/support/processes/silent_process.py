"""A further process that beats once and then stands still. Writes its id to SILENT_PIDS."""

import os
import time
from pathlib import Path

from leadline.daemon.runtime.sd_notify import notify

with Path(os.environ["SILENT_PIDS"]).open("a") as pids:
    pids.write(f"{os.getpid()}\n")
notify("READY=1")
notify("WATCHDOG=1")
while True:
    time.sleep(60)
