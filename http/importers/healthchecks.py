"""Import of Healthchecks from the answer of `GET /api/v3/checks/`. Checks become push monitors."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from .import_result import CannotImport, ImportResult
from .json_file import BadJson, read_json
from .source import Source

_DAY: Final = 86_400
_EVERY: Final = (
    (re.compile(r"\*/(\d{1,2}) \* \* \* \*"), 60),
    (re.compile(r"\d{1,2} \*/(\d{1,2}) \* \* \*"), 3_600),
)
_FIXED: Final = (
    (re.compile(r"\* \* \* \* \*"), 60),
    (re.compile(r"\d{1,2} \* \* \* \*"), 3_600),
    (re.compile(r"\d{1,2} \d{1,2} \* \* \*"), _DAY),
)

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
    interval = _interval(one)
    if interval is None:
        found.skip(name, f"its schedule {one.get('schedule')} is no interval")
        return
    if one.get("schedule"):
        zone = one.get("tz") or "UTC"
        lost.append(f"its schedule {one['schedule']} ({zone}): every {interval} s is expected")
    if interval > _DAY:
        found.skip(name, f"is expected every {interval} s, and a day is the longest here")
        return
    grace = int(one.get("grace") or 0)
    if grace > _DAY:
        lost.append(f"its grace of {grace} s: a day is the longest here")
    entry = {
        "name": name[:200],
        "type": "push",
        "description": " ".join(str(one.get("desc") or "").split())[:200],
        "tags": list(dict.fromkeys(str(one.get("tags") or "").split())),
        "interval_seconds": interval,
        "grace_seconds": min(grace, _DAY),
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


def _interval(one: Mapping[str, Any]) -> int | None:
    """Returns the seconds between expected pings, None if a schedule has no fixed interval."""
    schedule = one.get("schedule")
    if not schedule:
        return int(one.get("timeout") or _DAY)
    for pattern, unit in _EVERY:
        match = pattern.fullmatch(str(schedule))
        if match is not None:
            count = int(match[1])
            # If the count does not divide the hour or the day, its last interval is shorter.
            return count * unit if count and (60 if unit == 60 else 24) % count == 0 else None
    for pattern, seconds in _FIXED:
        if pattern.fullmatch(str(schedule)):
            return seconds
    return None
