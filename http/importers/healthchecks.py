"""Import of Healthchecks from the answer of `GET /api/v3/checks/`. Checks become push monitors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ...storage.monitors.rules.monitor import MonitorType, schedule_fault
from .import_result import CannotImport, ImportResult
from .json_file import BadJson, read_json
from .source import Source

_DAY: Final = 86_400
# Fields that the server computes or records, and the URLs of a check.
_STATE: Final = (
    "uuid",
    "unique_key",
    "n_pings",
    "started",
    "last_ping",
    "last_duration",
    "next_ping",
    "ping_url",
    "update_url",
    "pause_url",
    "resume_url",
    "badge_url",
    "channels",
)


def read_healthchecks(path: Path) -> ImportResult:
    """Returns the import of a file. Raises: CannotImport."""
    try:
        document = read_json(path.read_bytes())
        if isinstance(document, Mapping):
            document = Source(document)
        checks = document["checks"] if isinstance(document, Source) else document
    except BadJson as error:
        raise CannotImport(f"is no list of checks as its API gives it: it {error}") from error
    except KeyError as error:
        raise CannotImport("is no list of checks as its API gives it") from error
    if not isinstance(checks, list) or not all(isinstance(one, Mapping) for one in checks):
        raise CannotImport("is no list of checks as its API gives it")
    found = ImportResult()
    found.each((Source(one, is_generated=True) for one in checks), lambda one: _take(found, one))
    found.general.append(
        "integrations are not carried over, and each has a push URL of its own here"
    )
    found.general.append(f"{', '.join(_STATE)} are not carried over")
    if isinstance(document, Source):
        # The unread keys of checks are already reported.
        found.not_used("", document, ("checks",))
    return found


def _take(found: ImportResult, one: Source) -> None:
    name = str(one.get("name") or one.get("slug") or "unnamed")
    lost: list[str] = []
    when = _when(one)
    if isinstance(when, str):
        found.skip(name, when)
        return
    grace = int(one.get("grace") or 0)
    if grace > _DAY:
        lost.append(f"its grace of {grace} s: a day is the longest here")
    entry = {
        "name": name[:200],
        "type": "push",
        "description": " ".join(str(one.get("desc") or "").split())[:200],
        "tags": list(dict.fromkeys(str(one.get("tags") or "").split())),
        **when,
        "grace_seconds": max(min(grace, _DAY), 1 if "schedule" in when else 0),
        "enabled": one.get("status") != "paused",
    }
    config = _keywords(one, lost)
    if config:
        entry["config"] = config
    found.add(found.name(name), entry, lost, one, _STATE)


def _keywords(one: Source, lost: list[str]) -> dict[str, str]:
    """Returns the keywords that are searched in the body of a ping, one in each line."""
    failure, success = _lines_of(one.get("failure_kw")), _lines_of(one.get("success_kw"))
    if not one.get("filter_body"):
        return {}
    if one.get("start_kw"):
        lost.append("its start keywords: a ping of /start begins a run here")
    if success and not one.get("filter_default_fail"):
        lost.append("that a ping without a keyword is ignored: it is down here")
    given = {"failure_keywords": failure, "success_keywords": success}
    return {name: text for name, text in given.items() if text}


def _lines_of(words: object) -> str:
    return "\n".join(word for part in str(words or "").split(",") if (word := part.strip()))


def _when(one: Mapping[str, Any]) -> dict[str, Any] | str:
    """Returns the interval or the schedule of a check, or why it has none here."""
    expression, zone = str(one.get("schedule") or "").strip(), str(one.get("tz") or "UTC")
    if not expression:
        interval = int(one.get("timeout") or _DAY)
        if interval > _DAY:
            return f"is expected every {interval} s, and a day is the longest here"
        return {"interval_seconds": interval}
    timezone = "" if zone == "UTC" else zone
    broken = schedule_fault(MonitorType.PUSH, expression, timezone)
    if broken is not None:
        return f"its schedule {expression} ({zone}): {broken[0]} {broken[1]}"
    return {"schedule": expression, "timezone": timezone}
