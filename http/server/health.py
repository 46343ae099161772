"""Health and metrics, for machines: open to all, and telling nothing of any target."""

from typing import Final

import msgspec

from ...storage.accounts.rules.access import Action, Need
from ..wire.route import Ask, Reply, Route

_NOBODY: Final = Action(Need.NOBODY)
_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Health(msgspec.Struct, frozen=True):
    status: str
    faults: list[str] = []


async def healthz(_: Ask) -> Health:
    """The process is there and its loop turns, whatever the store does."""
    return Health("ok")


async def readyz(ask: Ask) -> Reply:
    """Whether requests can be answered now; what stands in the way is named."""
    readiness = ask.context.readiness()
    if not readiness.faults:
        return Reply(body=Health("ready"))
    return Reply(body=Health("not_ready", list(readiness.faults)), status=503)


async def metrics(ask: Ask) -> Reply:
    return Reply(body=ask.context.metrics(), content_type=_METRICS_TYPE)


ROUTES: Final = (
    Route(
        method="GET",
        path="/healthz",
        action=_NOBODY,
        handler=healthz,
        summary="Whether the process is alive.",
        answer=Health,
        in_document=False,
    ),
    Route(
        method="GET",
        path="/readyz",
        action=_NOBODY,
        handler=readyz,
        summary="Whether the process can answer.",
        answer=Health,
        in_document=False,
    ),
    Route(
        method="GET",
        path="/metrics",
        action=_NOBODY,
        handler=metrics,
        summary="Metrics in the Prometheus text format.",
        content_type=_METRICS_TYPE,
        in_document=False,
    ),
)
