"""The injector: begins and ends faults of the tables, with a seed.

A lane is a part of the installation that has one fault at a time: each process, the database, the
links, and the bundle. Faults of different lanes overlap.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.processes.daemon_process import Daemon

from .installation import Installation
from .patroni_cluster import Cluster


@dataclass
class Scene:
    """What a fault acts on. `part` names the lane; `kept` passes data from begin to end."""

    cluster: Cluster
    installation: Installation
    part: str
    chance: random.Random
    kept: dict[str, object] = field(default_factory=dict)


Step = Callable[[Scene], object]


@dataclass(frozen=True)
class Fault:
    """One kind of fault. `begin` returns what the log shows of it; `end` heals it."""

    name: str
    begin: Step
    end: Step
    # How long it lasts, s.
    seconds: tuple[float, float] = (1.0, 8.0)
    weight: int = 1


@dataclass(frozen=True)
class Lane:
    name: str
    faults: tuple[Fault, ...]
    # Time between two faults, s.
    pause: tuple[float, float]


@dataclass(frozen=True)
class Injection:
    """A fault that was injected, with the span in which it acted, s since the epoch."""

    lane: str
    fault: str
    detail: str
    began_at: float
    ended_at: float


@dataclass
class Injector:
    """Injects faults until `stop`, one thread per lane."""

    cluster: Cluster
    installation: Installation
    lanes: list[Lane]
    seed: int
    most: int
    log: Callable[[str], None]
    injected: list[Injection] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    # Processes that ended by themselves, and were started again.
    exits: Counter[str] = field(default_factory=Counter)
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for number, lane in enumerate(self.lanes):
            chance = random.Random(self.seed * 1_000 + number)
            arguments = (lane, chance)
            self._threads.append(threading.Thread(target=self._run, args=arguments, daemon=True))
        self._threads.append(threading.Thread(target=self._watch, daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends after the current faults are healed."""
        self._ended.set()
        for thread in self._threads:
            thread.join(300)

    def counts(self) -> dict[str, int]:
        return dict(sorted(Counter(one.fault for one in self.injected).items()))

    def _run(self, lane: Lane, chance: random.Random) -> None:
        while len(self.injected) < self.most and not self._ended.wait(chance.uniform(*lane.pause)):
            weights = [fault.weight for fault in lane.faults]
            (fault,) = chance.choices(lane.faults, weights)
            lock = self.installation.locks.get(lane.name, threading.RLock())
            with lock:
                self._inject(lane, fault, chance)

    def _inject(self, lane: Lane, fault: Fault, chance: random.Random) -> None:
        scene = Scene(self.cluster, self.installation, lane.name, chance)
        seconds = chance.uniform(*fault.seconds)
        began_at = time.time()
        detail = str(self._attempt(fault, fault.begin, scene) or "")
        self.log(f"{fault.name} {lane.name} {detail} for {seconds:.1f} s")
        self._ended.wait(seconds)
        # Also if the beginning failed, for example because no server could be promoted.
        self._attempt(fault, fault.end, scene)
        self.injected.append(Injection(lane.name, fault.name, detail, began_at, time.time()))

    def _attempt(self, fault: Fault, step: Step, scene: Scene) -> object:
        try:
            return step(scene)
        except Exception as error:
            self.failed.append(f"{fault.name} {scene.part}: {type(error).__name__}: {error}")
            self.log(self.failed[-1])
            return None

    def _watch(self) -> None:
        """Starts processes again that ended by themselves, as systemd does."""
        while not self._ended.wait(1):
            for name, process in self.installation.processes.items():
                lock = self.installation.locks[name]
                if not lock.acquire(blocking=False):
                    continue
                try:
                    if process.process is not None and process.process.poll() is not None:
                        self.exits[name] += 1
                        self.log(
                            f"{name} ended with {process.process.returncode}: {_last(process)}"
                        )
                        self.installation.begin(name)
                finally:
                    lock.release()


def _last(process: Daemon) -> str:
    return process.last_log_lines(1)[:300]
