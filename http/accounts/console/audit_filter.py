"""Filter of an audit log. The query string is the whole state of the list and of its export."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from ....storage.accounts.queries.audit_log import AuditFilter, AuditValues
from ....storage.core.instant import Instant
from ....storage.core.refusal import Refused
from ...ui.facets import Facet, facet_of
from ...ui.time_inputs import day_after, day_start
from ...wire.errors import Problem

_TEXT_LONGEST: Final = 200


class AuditScreenQuery(msgspec.Struct, frozen=True):
    """Values of one facet are alternatives. `from` and `to` are days, both included."""

    q: str = ""
    who: list[str] = []
    object: list[str] = []
    action: list[str] = []
    from_: str = msgspec.field(default="", name="from")
    to: str = ""
    page: int = 1


@dataclass(frozen=True, slots=True)
class ShownFilter:
    """Filter as the screen shows it, with the days as they were given."""

    chosen: AuditFilter
    from_: str
    to: str

    @property
    def is_empty(self) -> bool:
        return self.chosen == AuditFilter()

    @property
    def days(self) -> str:
        """Returns the range of days in words, empty without one."""
        if self.from_ and self.to:
            return self.from_ if self.from_ == self.to else f"{self.from_} to {self.to}"
        if self.from_:
            return f"from {self.from_}"
        return f"to {self.to}" if self.to else ""

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Returns the names and values of the query string."""
        lists = (
            ("who", self.chosen.actors),
            ("object", self.chosen.kinds),
            ("action", self.chosen.actions),
        )
        found = [(name, value) for name, values in lists for value in sorted(values)]
        single = (("q", self.chosen.q), ("from", self.from_), ("to", self.to))
        return [*found, *((name, value) for name, value in single if value)]

    def query(self, **further: Any) -> str:
        return urlencode([*self.fields, *further.items()])


def filter_of(query: AuditScreenQuery) -> ShownFilter:
    """Returns the filter of a query.

    Raises:
        Problem with the field, if a day is malformed or the range is empty.
    """
    try:
        since = day_start("from", query.from_) if query.from_ else None
        until = day_after("to", query.to) if query.to else None
    except Refused as refused:
        raise Problem(str(refused)) from None
    if since is not None and until is not None and until <= since:
        raise Problem("to: must not be before from")
    return ShownFilter(
        AuditFilter(
            actors=_values(query.who),
            kinds=_values(query.object),
            actions=_values(query.action),
            since=since,
            until=None if until is None else Instant(until),
            q=query.q.strip()[:_TEXT_LONGEST],
        ),
        query.from_,
        query.to,
    )


def _values(given: Iterable[str]) -> frozenset[str]:
    return frozenset(value for value in given if value)


def facets(found: Sequence[AuditValues], chosen: AuditFilter) -> list[Facet]:
    """Returns the facets with counts over the newest entries."""
    actors: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    actions: Counter[str] = Counter()
    for one in found:
        actors[one.actor] += one.many
        kinds[one.action.partition(".")[0]] += one.many
        actions[one.action] += one.many
    return [
        facet_of("who", "Who", actors, chosen.actors, str),
        facet_of("object", "Object", kinds, chosen.kinds, kind_words),
        facet_of("action", "Action", actions, chosen.actions, str),
    ]


def kind_words(kind: str) -> str:
    """Returns the name of a kind of object: `status_page` is Status page."""
    return kind.replace("_", " ").capitalize()
