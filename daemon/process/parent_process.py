"""The parent of a further API process, and what the process inherits from it."""

import logging
import socket
from dataclasses import dataclass
from typing import Final

import trio

from ..runtime.supervisor import Child, StopPhase

log = logging.getLogger("leadline.parent_process")


@dataclass(frozen=True, slots=True)
class InheritedSocket:
    """`parent` is the descriptor of a pipe that ends with the parent."""

    listening: socket.socket
    parent: int


@dataclass(frozen=True, slots=True)
class ParentProcess:
    pipe: int
    stopping: trio.Event

    async def watch(self) -> None:
        """Sets `stopping` when the parent ends."""
        async with trio.lowlevel.FdStream(self.pipe) as stream:
            while await stream.receive_some():
                pass
        if not self.stopping.is_set():
            log.warning("stopping, because the parent process ended")
            self.stopping.set()
        # A child that returns counts as failed.
        await trio.sleep_forever()


PARENT: Final[Child[ParentProcess]] = Child(
    "parent", StopPhase("signals"), bind=lambda parent: lambda _: parent.watch()
)
