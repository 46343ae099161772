"""Health and metrics for machines, without authentication and without details of targets."""

from typing import Final

import msgspec

from ...storage.accounts.rules.access import Need, Permission
from ..wire.route import Request, Response, Route

_NOBODY: Final = Permission(Need.NOBODY)
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class HealthState(msgspec.Struct, frozen=True):
    status: str
    faults: list[str] = []


async def healthz(_: Request) -> HealthState:
    """Answers ok while the process runs, regardless of the database."""
    return HealthState("ok")


async def readyz(ask: Request) -> Response:
    """Answers whether the process can handle requests, with the faults if it cannot."""
    readiness = ask.context.readiness()
    if not readiness.faults:
        return Response(body=HealthState("ready"))
    return Response(body=HealthState("not_ready", list(readiness.faults)), status=503)


async def metrics(ask: Request) -> Response:
    return Response(body=ask.context.metrics(), content_type=_METRICS_TYPE)


ROUTES: Final = (
    Route(
        method="GET",
        path="/healthz",
        action=_NOBODY,
        handler=healthz,
        summary="Liveness of the process.",
        answer=HealthState,
        in_document=False,
        short=True,
    ),
    Route(
        method="GET",
        path="/readyz",
        action=_NOBODY,
        handler=readyz,
        summary="Readiness of the process.",
        answer=HealthState,
        in_document=False,
        short=True,
    ),
    Route(
        method="GET",
        path="/metrics",
        action=_NOBODY,
        handler=metrics,
        summary="Metrics in the Prometheus text format.",
        content_type=_METRICS_TYPE,
        in_document=False,
        short=True,
    ),
)
