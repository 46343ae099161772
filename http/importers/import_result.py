"""Result of an import: valid entries of a bundle, and what each of them loses.

Every entry is validated before it is kept, so that the bundle of an import can be applied after the
secrets of the report exist. An invalid condition is omitted and reported.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from ...storage.bundles.rules.bundle import MONITORS_MOST, MonitorEntry, read_bundle
from ...storage.bundles.rules.bundle_default import brief_monitor
from ...storage.core.refusal import Refused
from ...storage.core.slug import free_slug, slug_of
from ...storage.monitors.rules.monitor import MonitorDraft, MonitorType
from ...storage.monitors.rules.monitor_defaults import BUILT_IN, completed
from ...storage.monitors.transactions.monitor_draft import check_draft
from .source import Source

_REGIONS: Final = frozenset({"core"})
# Fields of an entry that a draft has. Other parts of an entry are objects of their own.
_DRAFTED: Final = frozenset(MonitorDraft.__struct_fields__) - {"depends_on"}
_CONDITION: Final = re.compile(r"condition (\d+), (.*)")
# RFC 1035, 4.1.1: the codes by number, as in [STATUS].
RCODES: Final = ("NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED")
# Attempts to validate an entry. Each failed attempt omits one condition.
_TRIES_MOST: Final = 64
# A bundle cannot contain more.
ENTRIES_MOST: Final = MONITORS_MOST
# Names are cut, and the report states the first losses of an entry.
NAME_LONGEST: Final = 200
TEXT_LONGEST: Final = 300
LOSSES_MOST: Final = 50
_CODES_MOST: Final = 100
# Control characters, those that change the direction of text, and halves of characters.
_UNPRINTABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_UNKNOWN_FORM: Final = "has a structure that the importer does not know"


class CannotImport(ValueError):
    """The file is not from the tool. The text states the reason."""


@dataclass(frozen=True, slots=True)
class Note:
    """Losses of an imported object (`is_kept`), or why an object was not imported."""

    name: str
    is_kept: bool
    lost: tuple[str, ...]


@dataclass(slots=True)
class ImportResult:
    monitors: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    general: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    _entries: int = 0
    # By slug, the last number that made it unique.
    _numbers: dict[str, int] = field(default_factory=dict)

    def each(self, items: Iterable[Any], take: Callable[[Any], object]) -> None:
        """Calls `take` for each item. An item with an unexpected structure is skipped alone."""
        for one in items:
            self._entries += 1
            if self._entries > ENTRIES_MOST:
                raise CannotImport(f"has more than {ENTRIES_MOST} entries: divide it")
            try:
                take(one)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                self.skip(_called(one), _UNKNOWN_FORM)

    def name(self, name: str) -> str:
        """Returns an unused uid, derived from the name."""
        slug = slug_of(name[:NAME_LONGEST])
        found = free_slug(slug, self.monitors, self._numbers.get(slug, 2))
        if found != slug:
            self._numbers[slug] = int(found.rpartition("-")[2])
        return found

    def add(
        self,
        uid: str,
        entry: dict[str, Any],
        lost: list[str],
        source: Source | None = None,
        ignored: Collection[str] = (),
    ) -> bool:
        """Adds an entry and returns True, or reports why it is invalid and returns False.

        If it is added, `unused` gets the unread keys of `source` without the `ignored` ones, which
        the importer reports once for all entries.
        """
        first: dict[str, Any] = {
            name: entry[name] for name in ("name", "type", "target") if name in entry
        }
        entry = {
            name: value
            for name, value in brief_monitor({**first, **entry}).items()
            if value not in (None, "", [], {})
        }
        try:
            # Half of a character, or a value that JSON does not have.
            msgspec.json.encode(entry)
        except (ArithmeticError, TypeError, ValueError):
            self.skip(str(entry.get("name", uid)), _UNKNOWN_FORM)
            return False
        for _ in range(_TRIES_MOST):
            why = _fault(uid, entry)
            if why is None:
                self.monitors[uid] = entry
                if lost:
                    self._note(str(entry["name"]), True, lost)
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
        """Reports each unread key of `source`. `place` is the start of the line."""
        lines = (f"{place}{key} is not carried over" for key in source.unread(ignored))
        self.unused += [printable(line) for line in lines]

    def skip(self, name: str, why: str) -> None:
        self._note(name, False, [why])

    def _note(self, name: str, is_kept: bool, lost: list[str]) -> None:
        told = [printable(one) for one in lost[:LOSSES_MOST]]
        if len(lost) > LOSSES_MOST:
            told.append(f"{len(lost) - LOSSES_MOST} more")
        self.notes.append(Note(printable(name), is_kept, tuple(told)))


def printable(text: str) -> str:
    """Returns a text of the file as a line of the report."""
    cut = text if len(text) <= TEXT_LONGEST else f"{text[:TEXT_LONGEST]}…"
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", cut)


def _called(one: Any) -> str:
    return str(one["name"]) if isinstance(one, Mapping) and "name" in one else "unnamed"


def _fault(uid: str, entry: dict[str, Any]) -> Refused | None:
    """Returns why an entry is invalid, None if it is valid. References are not checked."""
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
        if value is not msgspec.UNSET and name in _DRAFTED
    }
    given["slug"], given["type"] = uid, entry.type.value
    return MonitorDraft(**completed(given, entry.type.value, BUILT_IN))


def status_condition(codes: list[str]) -> list[str]:
    """Conditions for statuses given as `200` or `200-299`. Raises ValueError."""
    codes = list(dict.fromkeys(codes))
    if len(codes) > _CODES_MOST:
        raise ValueError("too many")
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
    """Returns the text as a literal of a condition."""
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    )
    return '"' + escaped.replace("\t", "\\t") + '"'
