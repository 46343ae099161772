"""What an importer has found so far: entries that Leadline would take, and what is lost of each.

Every entry is held against the rules before it is kept, so that the bundle of an import applies
(but for the secrets that the report asks for); a condition that cannot be is left out and told.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from ...storage.bundles.rules.bundle import MonitorEntry, read_bundle
from ...storage.bundles.rules.bundle_default import brief_monitor
from ...storage.core.refusal import Refused
from ...storage.core.slug import free_slug, slug_of
from ...storage.monitors.rules.monitor import MonitorDraft, MonitorType
from ...storage.monitors.rules.monitor_defaults import BUILT_IN, completed
from ...storage.monitors.transactions.monitor_draft import check_draft
from .source import Source

_REGIONS: Final = frozenset({"core"})
_CONDITION: Final = re.compile(r"condition (\d+), (.*)")
# RFC 1035, 4.1.1: the codes by number, as [STATUS] has them.
RCODES: Final = ("NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED")
# One condition a try: there are few.
_TRIES_MOST: Final = 64


class CannotImport(ValueError):
    """The file is none that the tool writes; the text says what was looked for."""


@dataclass(frozen=True, slots=True)
class Note:
    """What a person is to know of one that was carried over, or of one that was not."""

    name: str
    is_kept: bool
    lost: tuple[str, ...]


@dataclass(slots=True)
class ImportResult:
    monitors: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    general: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    def each(self, items: Iterable[Any], take: Callable[[Any], object]) -> None:
        """What is written in a way that nobody thought of is left out, and nothing else with it."""
        for one in items:
            try:
                take(one)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                self.skip(_called(one), "is written in a way that is not known here")

    def name(self, name: str) -> str:
        """A uid that is still free."""
        return free_slug(slug_of(name), self.monitors)

    def add(
        self,
        uid: str,
        entry: dict[str, Any],
        lost: list[str],
        source: Source | None = None,
        ignored: Collection[str] = (),
    ) -> bool:
        """Returns whether it was kept. Then `unused` names the keys of `source` that the importer
        did not read, except the `ignored` ones, which the importer names once for all entries.
        """
        first: dict[str, Any] = {
            name: entry[name] for name in ("name", "type", "target") if name in entry
        }
        entry = {
            name: value
            for name, value in brief_monitor({**first, **entry}).items()
            if value not in (None, "", [], {})
        }
        for _ in range(_TRIES_MOST):
            why = _fault(uid, entry)
            if why is None:
                self.monitors[uid] = entry
                if lost:
                    self.notes.append(Note(str(entry["name"]), True, tuple(lost)))
                if source is not None:
                    self.not_used(f"monitor {entry['name']}: ", source, ignored)
                return True
            at = _CONDITION.fullmatch(why.message) if why.field == "conditions" else None
            if at is None:
                break
            dropped = entry["conditions"].pop(int(at[1]) - 1)
            lost.append(f"condition {dropped}: {at[2]}")
        self.skip(str(entry.get("name", uid)), str(why))
        return False

    def not_used(self, place: str, source: Source, ignored: Collection[str] = ()) -> None:
        """Names each unread key of `source`. `place` is the start of the line."""
        self.unused += [f"{place}{key} is not carried over" for key in source.unread(ignored)]

    def skip(self, name: str, why: str) -> None:
        self.notes.append(Note(name, False, (why,)))


def _called(one: Any) -> str:
    return str(one["name"]) if isinstance(one, Mapping) and "name" in one else "unnamed"


def _fault(uid: str, entry: dict[str, Any]) -> Refused | None:
    """Why Leadline would not take it. What it refers to is not looked at."""
    document = {"format": 1, "organization": "x", "project": "x", "monitors": {uid: entry}}
    try:
        read = read_bundle(document).monitors[uid]
        if read.type != MonitorType.COMPOSITE:
            check_draft(_draft(uid, read), _REGIONS)
    except Refused as why:
        return Refused(why.code, why.field.removeprefix(f"monitors.{uid}."), why.message)
    return None


def _draft(uid: str, entry: MonitorEntry) -> MonitorDraft:
    given = {
        name: value
        for name, value in msgspec.structs.asdict(entry).items()
        if value is not msgspec.UNSET and name not in ("depends_on", "escalation_policy")
    }
    given["slug"], given["type"] = uid, entry.type.value
    return MonitorDraft(**completed(given, entry.type.value, BUILT_IN))


def status_condition(codes: list[str]) -> list[str]:
    """Conditions for statuses given as `200` or `200-299`. Raises ValueError."""
    spans = [tuple(int(part) for part in code.split("-")) for code in codes]
    spans = [(span[0], span[-1]) for span in spans]
    if any(not 100 <= low <= high <= 999 for low, high in spans):
        raise ValueError("no statuses")
    if len(spans) == 1:
        low, high = spans[0]
        return (
            [f"[STATUS] == {low}"] if low == high else [f"[STATUS] >= {low}", f"[STATUS] <= {high}"]
        )
    parts = [str(code) for low, high in spans for code in _spelt(low, high)]
    return [f"[STATUS] matches ^({'|'.join(parts)})$"]


def _spelt(low: int, high: int) -> list[str]:
    if low % 100 == 0 and high == low + 99:
        return [f"{low // 100}[0-9]{{2}}"]
    return [str(code) for code in range(low, high + 1)]


def quoted(text: str) -> str:
    """As the literal of a condition."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    )
    return '"' + escaped.replace("\t", "\\t") + '"'
