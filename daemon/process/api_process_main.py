"""Main module of a further API process: `python -m … FD`, with its settings in the first line of
the standard input. The end of the standard input is the end of its parent, and stops it.
"""

import os
import socket
import sys

import msgspec
import trio

from ..config import logs
from ..config.config_schema import Settings
from ..config.roles import ProcessRole
from ..runtime.gc_tuning import importing
from .parent_process import InheritedSocket


def main() -> None:
    with importing():
        from .daemon_main import run_daemon
    line = sys.stdin.buffer.readline()
    settings = msgspec.json.decode(line, type=Settings)
    logs.configure(settings.log)
    listening = socket.socket(fileno=int(sys.argv[1]))
    listening.setblocking(False)
    inherited = InheritedSocket(listening, os.dup(0))
    trio.run(run_daemon, settings, ProcessRole.API, inherited)


if __name__ == "__main__":
    main()
