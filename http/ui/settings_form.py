"""A form over a setting of the whole installation that the API has: its rows are declared, and what
was typed stands in it again where it is refused."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, TypeVar

import msgspec

from ...storage.core.refusal import Refused
from ..wire.route import Request, Response, Route
from .form_routes import admin_route
from .render import page, redirect

_DIGITS_MOST: Final = 9


class Of(StrEnum):
    """What a row is typed as."""

    NUMBER = "number"
    TEXT = "text"
    LINES = "lines"
    CHECK = "check"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class SettingField:
    """`name` is that of the API's field, with its dots as lines; `choices` are of a choice."""

    name: str
    label: str
    of: Of
    hint: str = ""
    choices: Sequence[tuple[str, str]] = ()


Typed = Mapping[str, str]
Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class SettingForm:
    """`read` and `put` are the API's; `typed_of` spells what was read as it would be typed, `given`
    reads what was typed, and `says` tells in a sentence how it is. `otherwise` tells of codes other
    than invalid the row and what is said."""

    path: str
    title: str
    rows: Sequence[SettingField]
    read: Callable[[Request], Awaitable[Any]]
    put: Callable[[Request], Awaitable[Any]]
    typed_of: Callable[[Any], Typed]
    given: Callable[[Typed], Any]
    says: Callable[[Any], str]
    otherwise: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def routes(self) -> tuple[Route, ...]:
        return (
            admin_route(
                "GET", self.path, self._show, f"{self.title}, as it is set.", _SettingQuery
            ),
            admin_route("POST", self.path, self._act, f"{self.title}: sets it."),
        )

    async def _show(self, ask: Request) -> Response:
        found = await self.read(ask)
        return self._page(found, self.typed_of(found), saved=bool(ask.query.saved))

    async def _act(self, ask: Request) -> Response:
        typed = {row.name: ask.form.get(row.name, [""])[0].strip() for row in self.rows}
        try:
            await self.put(replace(ask, body=self.given(typed)))
        except Refused as refused:
            wrong = self._wrong(refused)
            if wrong is None:
                raise
            return self._page(await self.read(ask), typed, wrong=wrong, status=400)
        return redirect(f"{self.path}?saved=yes")

    def _wrong(self, refused: Refused) -> dict[str, str] | None:
        if refused.code in self.otherwise:
            return dict([self.otherwise[refused.code]])
        labels = {row.name: row.label for row in self.rows}
        name = refused.field.partition("[")[0].replace(".", "_")
        if refused.code != "invalid" or name not in labels:
            return None
        return {name: f"{labels[name]}: {refused.message}."}

    def _page(
        self,
        found: Any,
        typed: Typed,
        *,
        wrong: Mapping[str, str] | None = None,
        saved: bool = False,
        status: int = 200,
    ) -> Response:
        return page(
            "ui/settings_form.html",
            status=status,
            form=self,
            typed=typed,
            wrong={**dict.fromkeys(typed, ""), **(wrong or {})},
            says=self.says(found),
            configured=found.configured,
            saved=saved,
        )


class _SettingQuery(msgspec.Struct, frozen=True):
    """`saved` is there after it was."""

    saved: str = ""


def whole_number(typed: Typed, name: str) -> int:
    """Refused where it is none."""
    text = typed[name]
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MOST):
        raise Refused("invalid", name, "must be a whole number")
    return int(text)


def one_of(typed: Typed, name: str, words: type[Word]) -> Word:
    """Refused where it is none of them."""
    try:
        return words(typed[name])
    except ValueError:
        raise Refused("invalid", name, "must be one of those named") from None
