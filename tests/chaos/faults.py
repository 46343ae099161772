"""Faults of a chaos run. Each is injected and healed; faults of different parts overlap."""

import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .installation import Installation
from .patroni_cluster import Cluster


@dataclass
class Injector:
    """Injects faults with a seed until `stop`.

    One thread per part: the database, and each process of Leadline. A part has one fault at a time.
    """

    cluster: Cluster
    installation: Installation
    seed: int
    most: int
    log: Callable[[str], None]
    # A line for each injected fault, with its instant.
    injected: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        parts = {"database": self._database, **dict.fromkeys(self.installation.processes)}
        for number, (name, work) in enumerate(parts.items()):
            chance = random.Random(self.seed * 1_000 + number)
            arguments = (name, work or self._process, chance)
            self._threads.append(threading.Thread(target=self._run, args=arguments, daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends after the current faults are healed."""
        self._ended.set()
        for thread in self._threads:
            thread.join(300)

    def _run(
        self, name: str, work: Callable[[str, random.Random], None], chance: random.Random
    ) -> None:
        pause = (20, 45) if name == "database" else (8, 40)
        while len(self.injected) < self.most and not self._ended.wait(chance.uniform(*pause)):
            try:
                work(name, chance)
            except Exception as error:
                self.failed.append(f"{name}: {type(error).__name__}: {error}")
                self.log(self.failed[-1])

    def _note(self, text: str) -> None:
        self.injected.append(f"{time.time():.3f} {text}")
        self.log(text)

    def _process(self, name: str, chance: random.Random) -> None:
        daemon = self.installation.processes[name]
        process = daemon.process
        assert process is not None
        kind = chance.choice(["kill", "freeze", "freeze", "restart"])
        seconds = chance.uniform(0.5, 8)
        self._note(f"{kind} {name} for {seconds:.1f} s")
        if kind == "freeze":
            process.send_signal(signal.SIGSTOP)
            time.sleep(seconds)
            process.send_signal(signal.SIGCONT)
            return
        if kind == "kill":
            daemon.kill()
            time.sleep(seconds)
        else:
            daemon.stop()
        # A start waits for a database that is not there.
        daemon.begin(name.rstrip("123"))

    def _database(self, _name: str, chance: random.Random) -> None:
        leader = self.cluster.wait_for_leader()
        kind = chance.choice(["switch over", "kill", "freeze"])
        self._note(f"{kind} the primary {leader.name}")
        if kind == "switch over":
            self.cluster.switch_over()
        elif kind == "kill":
            leader.kill()
            self.cluster.wait_for_leader(besides=leader)
            leader.start()
        else:
            leader.freeze()
            self.cluster.wait_for_leader(besides=leader)
            time.sleep(chance.uniform(0, 10))
            leader.thaw()
        self.cluster.wait_for_replica()
