"""Applications of a bundle of many monitors, each with another timeout for all of them."""

import http.client
from dataclasses import dataclass, field
from typing import Any

from tests.support.processes.daemon_process import Refusal

from .faults import Fault, Scene
from .installation import Installation
from .verifier import verify_bundle

# Their checks are rare, so that they cost the schedule and not the probes.
INTERVAL_SECONDS = 3_600
PREFIX = "bundle-"


@dataclass
class Bundles:
    """The last acknowledged application, and those with an unknown end: any can be in force."""

    monitors: int
    number: int = 0
    acknowledged: int = 0
    unknown: set[int] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    verified: int = 0

    def fault(self) -> Fault:
        return Fault("bundle apply", self._apply, self._verify, (0, 2))

    def document(self, found: Installation) -> dict[str, Any]:
        one = {
            "type": "http",
            "target": found.url_of(10**6),
            "interval_seconds": INTERVAL_SECONDS,
            # 1 to 60 s, which tells the applications apart.
            "timeout_seconds": self.number % 60 + 1,
        }
        monitors = {f"{PREFIX}{n}": {"name": f"{PREFIX}{n}", **one} for n in range(self.monitors)}
        return {"format": 2, "organization": "chaos", "project": "chaos", "monitors": monitors}

    def _apply(self, scene: Scene) -> str:
        found = scene.installation
        self.number += 1
        process = scene.chance.choice(found.named("api"))
        process.cookie = found.cookie
        path = f"/projects/{found.project}/bundle/apply?name=chaos"
        try:
            process.api("POST", path, self.document(found))
        except Refusal as refusal:
            # Only an answer below 500 says that nothing was applied.
            if refusal.status >= 500:
                self.unknown.add(self.number)
            self.refused.append(f"{refusal.status} {refusal.body[:200]!r}")
            return f"{self.number} refused with {refusal.status}"
        except (OSError, http.client.HTTPException) as error:
            self.unknown.add(self.number)
            return f"{self.number} without an answer: {type(error).__name__}"
        self.acknowledged = self.number
        return f"{self.number} acknowledged"

    def _verify(self, scene: Scene) -> None:
        self.verify(scene.installation)

    def verify(self, found: Installation) -> None:
        """Compares the monitors with the applications. Without an answer it verifies nothing."""
        try:
            listed = found.api("GET", f"/projects/{found.project}/monitors")
        except (OSError, Refusal, http.client.HTTPException):
            return
        self.verified += 1
        timeouts = [one["timeout_seconds"] for one in listed if one["name"].startswith(PREFIX)]
        self.violations += verify_bundle(
            timeouts, self.monitors, {n % 60 + 1 for n in self.unknown}, self.acknowledged % 60 + 1
        )
