"""Which role runs which children."""

from enum import StrEnum


class Role(StrEnum):
    ALL = "all"
    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"


class Part(StrEnum):
    """A child of the supervisor, by the name it is logged and counted under."""

    HTTP = "http"
    OPS = "ops"
    RECORDER = "recorder"
    TICKER = "ticker"
    LISTENER = "listener"
    PROBER = "prober"
    SEALER = "sealer"
    REPAIRER = "repairer"
    JANITOR = "janitor"


PARTS: dict[Role, frozenset[Part]] = {
    Role.ALL: frozenset(set(Part) - {Part.OPS}),
    Role.API: frozenset({Part.HTTP, Part.RECORDER}),
    Role.SCHEDULER: frozenset(
        {
            Part.OPS,
            Part.RECORDER,
            Part.TICKER,
            Part.LISTENER,
            Part.SEALER,
            Part.REPAIRER,
            Part.JANITOR,
        }
    ),
    Role.WORKER: frozenset({Part.OPS, Part.RECORDER, Part.PROBER}),
}
