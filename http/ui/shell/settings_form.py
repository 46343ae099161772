"""Form of an installation setting, derived from the bodies of its API.

The rows name the fields, so a new field needs a row. A refused form keeps its input.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, Final

import msgspec

from ....storage.accounts.rules.access import Permission
from ....storage.core.refusal import Refused
from ....storage.incidents.rules.incident import normal_lines
from ...wire.errors import Problem, fault_in_words
from ...wire.route import Request, Response, Route
from ..form_routes import form_route
from ..form_values import stripped, value_of, whole_number
from ..render import page, redirect
from .page_layout import outer_frame_of


class Of(StrEnum):
    """Control of a row, and the format of its text."""

    NUMBER = "number"
    TEXT = "text"
    LINES = "lines"
    # List with one word per line, or separated by commas.
    WORDS = "words"
    # List in one line.
    WORD_LINE = "word_line"
    CHECK = "check"
    CHOICE = "choice"
    # Not rendered. An empty value keeps the stored secret.
    SECRET = "secret"
    # Header lines, `Name: value`, as a secret. An empty value keeps the stored ones, a dash removes
    # them.
    HEADERS = "headers"

    @property
    def is_secret(self) -> bool:
        return self in (Of.SECRET, Of.HEADERS)


@dataclass(frozen=True, slots=True)
class SettingField:
    """Field of the API body.

    `path` leads to a field of an inner object (`announcement.text`). `choices` are those of a
    choice. `is_stored` returns whether the current setting has the secret. `group` begins a panel
    with this title.
    """

    name: str
    label: str
    of: Of
    hint: str = ""
    choices: Sequence[tuple[str, str]] = ()
    path: str = ""
    is_stored: Callable[[Any], bool] | None = None
    group: str = ""

    @property
    def keys(self) -> list[str]:
        return (self.path or self.name).split(".")

    def typed_of(self, body: Mapping[str, Any]) -> str:
        """Returns the value of a JSON body as form text."""
        value: Any = body
        for key in self.keys:
            value = value[key]
        match self.of:
            case Of.CHECK:
                return "on" if value else ""
            case Of.WORDS:
                return "\n".join(value)
            case Of.WORD_LINE:
                return " ".join(value)
            case _:
                return str(value)

    def value_of(self, text: str) -> object:
        """Returns the API value of the input. Refused invalid, with the field."""
        match self.of:
            case Of.NUMBER:
                return whole_number(self.name, text)
            case Of.CHECK:
                return text == "on"
            case Of.CHOICE:
                if text not in (value for value, _ in self.choices):
                    raise Refused("invalid", self.name, "choose a value from the list")
                return text
            case Of.WORDS | Of.WORD_LINE:
                return text.replace(",", " ").split()
            case Of.LINES:
                return normal_lines(text)
            case Of.HEADERS:
                return _headers(self.name, normal_lines(text))
            case Of.TEXT | Of.SECRET:
                return text


@dataclass(frozen=True, slots=True)
class TestResult:
    """Result of a test of the stored setting, as a sentence, and what it sent or would send.

    `wrong` is the fault of a field of the test.
    """

    ok: bool
    text: str
    sent: str = ""
    wrong: Mapping[str, str] = field(default_factory=dict)


Typed = Mapping[str, str]
# Field that the form has after it showed the consequence of a change.
CONFIRMED: Final = "confirmed"


@dataclass(frozen=True, slots=True)
class SettingForm:
    """Form of a setting.

    `read` and `put` are the handlers of the API, `body` is the request type of `put`. `says`
    returns a sentence about the current setting. `otherwise` maps other codes than invalid to row
    and message. `unset` describes the default, `after_save` the effect of a save. `test` tests the
    stored setting, `test_label` is its button, `test_about` states what it does. `test_rows` are
    the inputs of the test, and `more_tests` further (act, label) buttons.
    """

    path: str
    title: str
    # Entry of the settings list.
    section: str
    rows: Sequence[SettingField]
    read: Callable[[Request], Awaitable[Any]]
    put: Callable[[Request], Awaitable[Any]]
    body: type
    # The permission that `put` enforces.
    action: Permission
    says: Callable[[Any], str]
    otherwise: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    unset: str = "Built-in default"
    after_save: str = ""
    # Returns the consequence of a change that the user must confirm, empty without one.
    consequence: Callable[[Request], Awaitable[str]] | None = None

    test: Callable[[Request], Awaitable[TestResult]] | None = None
    test_label: str = ""
    test_about: str = ""
    test_rows: Sequence[SettingField] = ()
    more_tests: Sequence[tuple[str, str]] = ()

    @property
    def tests(self) -> list[tuple[str, str]]:
        """Returns (act, label) of the buttons of the test."""
        return [*self.more_tests, ("test", self.test_label)]

    def routes(self) -> tuple[Route, ...]:
        route = partial(form_route, action=self.action)
        return (
            route(
                "GET", self.path, None, self._show, f"{self.title}, as it is set.", _SettingQuery
            ),
            route("POST", self.path, None, self._act, f"{self.title}: set it or test it."),
        )

    def _typed_of(self, found: Any) -> Typed:
        body = msgspec.to_builtins(found)
        return {row.name: row.typed_of(body) for row in self.rows if not row.of.is_secret}

    def _body_of(self, typed: Typed) -> Any:
        given: dict[str, Any] = {}
        for row in self.rows:
            inner = given
            for key in row.keys[:-1]:
                inner = inner.setdefault(key, {})
            if row.of is not Of.HEADERS or typed[row.name].strip():
                inner[row.keys[-1]] = row.value_of(typed[row.name])
        try:
            return msgspec.convert(given, self.body)
        except msgspec.ValidationError as error:
            raise Problem(fault_in_words(str(error))) from error

    async def _show(self, ask: Request) -> Response:
        found = await self.read(ask)
        return await self._page(ask, found, self._typed_of(found), saved=bool(ask.query.saved))

    async def _act(self, ask: Request) -> Response:
        if self.test is not None and value_of(ask, "act") in dict(self.tests):
            tested = await self.test(ask)
            found = await self.read(ask)
            given_ = {row.name: stripped(ask, row.name) for row in self.test_rows}
            shown = {**self._typed_of(found), **given_}
            status = 400 if tested.wrong else 200
            return await self._page(
                ask, found, shown, tested=tested, wrong=tested.wrong, status=status
            )
        typed = {row.name: _typed(ask, row) for row in self.rows}
        try:
            given = replace(ask, body=self._body_of(typed))
            if self.consequence is not None and not stripped(ask, CONFIRMED):
                consequence = await self.consequence(given)
                if consequence:
                    return await self._page(
                        ask, await self.read(ask), typed, consequence=consequence
                    )
            await self.put(given)
        except (Refused, Problem) as refused:
            wrong = self._wrong(refused)
            if wrong is None:
                raise
            return await self._page(ask, await self.read(ask), typed, wrong=wrong, status=400)
        return redirect(f"{self.path}?saved=yes")

    def _wrong(self, refused: Refused | Problem) -> dict[str, str] | None:
        if refused.code in self.otherwise:
            return dict([self.otherwise[refused.code]])
        labels = {row.name: row.label for row in self.rows}
        if isinstance(refused, Problem):
            field_, _, message = refused.code.partition(": ")
        else:
            field_, message = refused.field if refused.code == "invalid" else "", refused.message
        name = field_.partition("[")[0].replace(".", "_")
        return {name: f"{labels[name]}: {message}."} if name in labels else None

    async def _page(
        self,
        ask: Request,
        found: Any,
        typed: Typed,
        *,
        wrong: Mapping[str, str] | None = None,
        saved: bool = False,
        consequence: str = "",
        tested: TestResult | None = None,
        status: int = 200,
    ) -> Response:
        return page(
            "ui/shell/settings_form.html",
            status=status,
            frame=await outer_frame_of(ask),
            section=self.section,
            form=self,
            found=found,
            typed={**{row.name: "" for row in self.test_rows}, **typed},
            wrong={
                **{row.name: "" for row in (*self.rows, *self.test_rows)},
                **(wrong or {}),
            },
            says=self.says(found),
            configured=found.configured,
            saved=saved,
            consequence=consequence,
            tested=tested,
        )


class _SettingQuery(msgspec.Struct, frozen=True):
    """`saved` is set after a save."""

    saved: str = ""


def _typed(ask: Request, row: SettingField) -> str:
    return value_of(ask, row.name) if row.of.is_secret else stripped(ask, row.name)


def _headers(name: str, text: str) -> dict[str, str]:
    """Returns the headers of lines, {} for a dash.

    Raises: Refused invalid, also for a name that is given twice.
    """
    if text.strip() == "-":
        return {}
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not key.strip() or not value.strip():
            raise Refused("invalid", name, "each line must be a name, a colon and a value")
        if key.strip().lower() in (one.lower() for one in found):
            raise Refused("invalid", name, f"each name is given once, {key.strip()} is repeated")
        found[key.strip()] = value.strip()
    return found
