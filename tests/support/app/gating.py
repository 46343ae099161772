"""Helpers for tests of the gate: a clock that the test sets, policies, services with complete data,
and a check of all stored decisions at the end.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from leadline.http.auth.passwords import Passwords
from leadline.http.wire.admission_control import AdmissionControl, RateLimits
from leadline.storage.core.instant import SECOND, Instant, to_text
from leadline.storage.engine.pools import open_pool
from leadline.storage.gate.rules.gate_evidence import Evidence, evaluate_policy
from leadline.storage.services.rules.service_health import Durations
from tests.conftest import FROZEN_NOW
from tests.incidents.test_service_incidents_api import govern
from tests.support.app.cast import Api, open_api
from tests.support.app.serving import UP, call, declared, sealed, uid_of

CLAUSES = (
    "budget_exhausted",
    "budget_consumed",
    "page_burn_firing",
    "ticket_burn_firing",
    "service_incident_open",
)
# Rate limits that no test of another subject reaches.
PLENTY = RateLimits(inflight_process=100)

_LEDGER = """
select state, action, unoverridden_action, reasons::text, policy_revision, override_uid, uid,
  evaluated_at, evidence::text
from gate_decisions
"""


@dataclass
class Clock:
    now: Instant = FROZEN_NOW

    def __call__(self) -> Instant:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now = Instant(self.now + int(seconds * SECOND))


@dataclass
class Gated:
    api: Api
    clock: Clock

    async def ask(self, path: str, who: str = "viewer") -> Any:
        return await call(self.api, "POST", f"{path}/gate", who=who)

    async def service(
        self, slug: str = "checkout", *lengths: tuple[int, Durations], window: str = "24h"
    ) -> str:
        """Creates a service for which every fact except incidents is known, and returns its path.
        Its sealed time is by default a good day; it has an objective of 99 % and burn rules that do
        not fire.
        """
        path = await declared(self.api, slug)
        lengths = lengths or ((1_440, UP),)
        await sealed(self.api, path, *lengths)
        await govern(self.api, path, 1, -sum(minutes for minutes, _ in lengths))
        await self.aim(path, window)
        return path

    async def aim(self, path: str, window: str) -> None:
        target = {"window": window, "objective": 99}
        await call(self.api, "PUT", f"{path}/sla-target", target)
        body = {"window": window, "burn_alert_enabled": True}
        await call(self.api, "PUT", f"{path}/sla-target/burn-alerting", body)
        await self.evaluate_burn_rules(path)

    async def evaluate_burn_rules(self, path: str, firing: str = "") -> None:
        """Sets the burn rules as if evaluated now: those of the severity `firing` fire."""
        async with self.api.pool.transaction("look") as tx:
            await tx.execute(
                "update burn_rules b set evaluated_at = at(%(now)s), firing = (severity = %(f)s), "
                "last_verdict = case severity when %(f)s then 'firing' else 'clear' end, "
                "lease_until = at(%(now)s) + interval '90 seconds' "
                "from services s where s.org = b.org and s.id = b.service and s.uid = %(uid)s",
                now=self.clock.now,
                f=firing,
                uid=UUID(uid_of(path)),
            )

    async def put(
        self, path: str, expected: int | None = None, status: int = 200, **of: Any
    ) -> Any:
        """Puts the policy of a service or a project."""
        return await call(self.api, "PUT", f"{path}/gate/policy", policy(expected, **of), status)

    async def let_through(
        self, path: str, revision: int, status: int = 201, *, seconds: int = 3_600, **of: Any
    ) -> Any:
        until = to_text(Instant(self.clock.now + seconds * SECOND))
        body = {"policy_revision": revision, "reason": "It mends it.", "expires_at": until, **of}
        return await call(
            self.api, "POST", f"{path}/gate/override", body, status, who="project_admin"
        )

    @property
    def project(self) -> str:
        return f"/projects/{self.api.project}"

    async def count(self) -> int:
        (found,) = await self.api.rows("select count(*) from gate_decisions")
        return int(found[0])


def policy(expected: int | None = None, **of: Any) -> dict[str, Any]:
    """Returns a policy in which each known clause of `Gated.service` blocks; clauses are set by
    name.
    """
    usual = {**dict.fromkeys(CLAUSES, "block"), "service_incident_open": "ignore"}
    clauses = {name: of.pop(name, usual[name]) for name in CLAUSES}
    body = {
        "expected_revision": expected,
        "schema_version": 1,
        "window": "24h",
        "clauses": clauses,
        "budget_consumed_percent": 80,
        "max_seal_lag_seconds": 3_600,
        "unknown_behavior": "block",
        **of,
    }
    return {name: value for name, value in body.items() if value is not ...}


@asynccontextmanager
async def open_gated(dsn: str, passwords: Passwords, bounds: RateLimits) -> AsyncIterator[Gated]:
    clock = Clock()
    async with (
        open_pool(dsn, name="test", size=12, clock=clock) as pool,
        open_api(pool, FROZEN_NOW, passwords, clock=clock, gate=AdmissionControl(bounds)) as api,
    ):
        yield Gated(api, clock)
        await _read_again(api)


async def _read_again(api: Api) -> None:
    """Checks that each stored decision follows from its evidence."""
    for row in await api.rows(_LEDGER):
        state, action, unoverridden, reasons, revision, override, uid, at, text = row
        evidence = msgspec.json.decode(text, type=Evidence)
        again = evaluate_policy(evidence)
        assert (again.state, again.action, again.unoverridden_action) == (
            state,
            action,
            unoverridden,
        )
        assert msgspec.json.encode(again.reasons).decode() == reasons
        assert revision == (evidence.policy and evidence.policy.revision)
        assert override == (evidence.override and evidence.override.uid)
        assert at == evidence.facts.at == (uid.int >> 80) * 1_000
