"""Structured logs: one JSON object per line, or a readable line on a terminal."""

import logging
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from .config_schema import Log

_OURS: Final = __name__.partition(".")[0]
# Trio logs ten times a second that no descriptor is free for a new connection.
_ACCEPTS: Final = "trio.serve_listeners"
REPEAT_SECONDS: Final = 60.0
# Fields of every log record; the caller adds all other fields.
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure(settings: Log) -> None:
    """Sends logs to standard error, which systemd and terminals show.

    The level applies to Leadline only. Log records of libraries below a warning repeat their input,
    such as paths and header values.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if writes_json(settings) else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(_OURS).setLevel(settings.level.upper())
    logging.getLogger(_ACCEPTS).filters[:] = [FirstOfMinute()]


class FirstOfMinute(logging.Filter):
    """Passes a record of a logger at most every REPEAT_SECONDS, without its traceback.

    `monotonic` returns seconds.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._next = monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._monotonic()
        if now < self._next:
            return False
        self._next = now + REPEAT_SECONDS
        record.exc_info = None
        return True


def writes_json(settings: Log) -> bool:
    return settings.format == "json" or (settings.format == "auto" and not sys.stderr.isatty())


def write_line(logger: logging.Logger, message: str, fields: Mapping[str, object]) -> None:
    """Writes an info line even if `log.level` is higher."""
    record = logger.makeRecord(
        logger.name, logging.INFO, "", 0, message, (), None, extra=dict(fields)
    )
    logging.getLogger().handle(record)


def _extra_fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _OWN}


def _trouble(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    return "".join(traceback.format_exception(record.exc_info[1]))


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "ts": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_extra_fields(record),
        }
        trouble = _trouble(record)
        if trouble:
            line["exception"] = trouble
        return msgspec.json.encode(line, enc_hook=str).decode()


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        given = " ".join(f"{key}={value}" for key, value in _extra_fields(record).items())
        head = f"{moment:%H:%M:%S} {record.levelname.lower():7} {record.getMessage()}"
        return "\n".join(part for part in (f"{head}  {given}".rstrip(), _trouble(record)) if part)
