"""Load of a chaos run: pushes, questions to the gate, readers, announcements, and targets that go
down and up.
"""

import http.client
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from tests.support.processes.daemon_process import Refusal

from .announcements import Announcements
from .installation import Installation
from .verifier import GateAnswer

PUSH_SECONDS = 1.0
# A push waits for a new primary within its own bound.
PUSH_ANSWER_SECONDS = 60.0
# At most 10 a minute of one user.
GATE_SECONDS = 7.0
READ_SECONDS = 1.0
# All targets are down at once for STORM_SECONDS in each STORM_PERIOD_SECONDS.
STORM_PERIOD_SECONDS, STORM_SECONDS = 180.0, 20.0


@dataclass
class Load:
    """What the clients did, and the answers that they got."""

    installation: Installation
    seed: int
    # Instant of each acknowledged push, by number of the job and by text.
    acknowledged: dict[int, dict[str, float]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    gate: list[GateAnswer] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    announcements: Announcements = field(init=False)
    ended: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.announcements = Announcements(self.installation)

    def start(self) -> None:
        for number in self.installation.jobs:
            self.acknowledged[number] = {}
            self._begin(self._push, number)
        for work in (self._ask_gate, self._read, self._break_targets):
            self._begin(work)
        told = self.announcements
        for watch in (told.announce, told.record_changes, told.read_page):
            self._begin(watch, self.ended)

    def stop(self) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join(PUSH_ANSWER_SECONDS + 10)

    def _begin(self, work: Callable[..., None], *arguments: Any) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

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
            except (OSError, http.client.HTTPException) as error:
                name = type(error).__name__
                self.refused.append(f"{text}: {name} after {time.time() - began:.1f} s")

    def _ask_gate(self) -> None:
        found = self.installation
        path = f"/projects/{found.project}/services/{found.service}/gate"
        for asked_at, body in self._call("POST", path, {}, GATE_SECONDS):
            self.gate.append(GateAnswer(asked_at, time.time(), body))
            self.requests[f"gate {body['action']}"] += 1

    def _read(self) -> None:
        path = f"/projects/{self.installation.project}/incidents?limit=20"
        for _ in self._call("GET", path, None, READ_SECONDS):
            self.requests["read 200"] += 1

    def _call(
        self, method: str, path: str, body: Any, seconds: float
    ) -> Iterator[tuple[float, Any]]:
        """Calls a route at the api processes by turns. Yields the good answers, counts others."""
        for process in cycle(self.installation.named("api")):
            if self.ended.wait(seconds):
                return
            process.cookie = self.installation.cookie
            asked_at = time.time()
            try:
                yield asked_at, process.api(method, path, body)
            except Refusal as refusal:
                self.requests[f"{method} {refusal.status}"] += 1
            except (OSError, http.client.HTTPException) as error:
                self.requests[f"{method} {type(error).__name__}"] += 1

    def _break_targets(self) -> None:
        chance = random.Random(self.seed)
        numbers = list(self.installation.monitors)
        down: dict[int, float] = {}
        storm_at = time.time() + STORM_PERIOD_SECONDS / 2
        while not self.ended.wait(0.5):
            now = time.time()
            for number in [one for one, until in down.items() if until <= now]:
                del down[number]
                self.installation.target.say(f"{number} up")
            if now >= storm_at:
                storm_at += STORM_PERIOD_SECONDS
                chosen, until = numbers, now + STORM_SECONDS
            elif chance.random() < 0.1:
                chosen, until = [chance.choice(numbers)], now + chance.uniform(3, 25)
            else:
                continue
            for number in set(chosen) - set(down):
                down[number] = until
                self.installation.target.say(f"{number} down")
