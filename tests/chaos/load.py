"""Load of a chaos run: pushes, and a target that goes down and up. Each step is logged."""

import random
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field

from .installation import Installation

PUSH_SECONDS = 1.0
# A push waits for a new primary within its own bound.
PUSH_ANSWER_SECONDS = 60.0


@dataclass
class Load:
    """Pushes each second for each job, and an outage of each target at random."""

    installation: Installation
    seed: int
    # Instant of each acknowledged push, by number of the job and by text.
    acknowledged: dict[int, dict[str, float]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for number in self.installation.jobs:
            self.acknowledged[number] = {}
            self._threads.append(threading.Thread(target=self._push, args=(number,), daemon=True))
        self._threads.append(threading.Thread(target=self._break_targets, daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join(PUSH_ANSWER_SECONDS + 10)

    def _push(self, number: int) -> None:
        processes = self.installation.named("api")
        count = 0
        while not self.ended.wait(PUSH_SECONDS):
            count += 1
            text = f"p{number}-{count}"
            url = processes[count % len(processes)].url
            path = self.installation.push_path[number]
            request = urllib.request.Request(f"{url}{path}?msg={text}", method="POST")
            began = time.time()
            try:
                with urllib.request.urlopen(request, timeout=PUSH_ANSWER_SECONDS) as answer:
                    if answer.status == 200:
                        self.acknowledged[number][text] = began
            except urllib.error.HTTPError as error:
                self.refused.append(f"{text}: {error.code} after {time.time() - began:.1f} s")
            except OSError as error:
                self.refused.append(
                    f"{text}: {type(error).__name__} after {time.time() - began:.1f} s"
                )

    def _break_targets(self) -> None:
        chance = random.Random(self.seed)
        down: dict[int, float] = {}
        while not self.ended.wait(0.5):
            now = time.time()
            for number in [one for one, until in down.items() if until <= now]:
                del down[number]
                self.installation.target.set(number, "up")
            if chance.random() < 0.2 and len(down) < len(self.installation.monitors) // 3:
                number = chance.choice(list(self.installation.monitors))
                if number not in down:
                    down[number] = now + chance.uniform(3, 25)
                    self.installation.target.set(number, "down")
