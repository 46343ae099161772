"""Parsed scenario: its steps with their extracts and assertions.

Pure. Faults name the step and its part, never a value. Assertions use the condition language, so
that both compare in the same way.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from ...check.condition import BadCondition, Condition, Literal, Operand, Operator, read_path
from ...check.monitor_spec import (
    BINDING,
    BODY_LONGEST,
    HEADERS_MOST,
    header_fault,
    is_credential_header,
)
from ...check.target import BadTarget, read_url
from .template import BadTemplate, Context, Template, read_template

STEPS_MOST = 20
NAME_LONGEST = 100
EXTRACTS_MOST = 16
ASSERTIONS_MOST = 16
VALUE_LONGEST = 1_024
URL_LONGEST = 2_048
SCENARIO_LONGEST = 128 * 1024


# A placeholder also begins with a brace.
_LOOKS_LIKE_JSON = re.compile(r"\s*(\{(?!\{)|\[)")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")


class BadScenario(ValueError):
    """Raised for an invalid scenario. The text names the step and its part, not a value."""


class Method(StrEnum):
    GET = "GET"
    HEAD = "HEAD"
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"
    DELETE = "DELETE"
    OPTIONS = "OPTIONS"


class Source(StrEnum):
    JSON = "json"
    HEADER = "header"
    STATUS = "status"
    BODY = "body"


class AssertionKind(StrEnum):
    STATUS = "status"
    BODY_CONTAINS = "body_contains"
    JSON = "json"
    LATENCY_MS = "latency_ms"


@dataclass(frozen=True, slots=True)
class Extract:
    """Extracted variable.

    `path` is a path into a JSON document. `header` is a lower-case name.
    """

    var: str
    source: Source
    path: tuple[str | int, ...] = ()
    header: str = ""


@dataclass(frozen=True, slots=True)
class Assertion:
    """Assertion on a response. The filled `value` is the literal of `operator` on `place`."""

    kind: AssertionKind
    place: Operand
    operator: Operator
    value: Template
    is_text: bool
    # True for `ne` of body_contains.
    negated: bool = False

    def condition(self, value: str) -> Condition:
        return Condition(self.place, self.operator, Literal(value, quoted=self.is_text))


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One request. `host` contains no placeholder, so that messages can show it."""

    number: int
    name: str
    method: str
    url: Template
    host: str
    headers: tuple[tuple[str, Template], ...]
    body: Template | None
    body_context: Context
    extracts: tuple[Extract, ...]
    assertions: tuple[Assertion, ...]

    @property
    def templates(self) -> tuple[Template, ...]:
        """Returns all templates that can contain secrets."""
        body = (self.body,) if self.body is not None else ()
        return (self.url, *(template for _, template in self.headers), *body)

    @property
    def asserts_status(self) -> bool:
        return any(a.kind is AssertionKind.STATUS for a in self.assertions)

    @property
    def wants_redirect(self) -> bool:
        """Returns whether the step asserts a redirect, so that it is not followed."""
        return any(
            a.kind is AssertionKind.STATUS
            and a.operator is Operator.EQUAL
            and re.fullmatch("3[0-9][0-9]", str(a.value.parts[0]) if a.value.parts else "")
            for a in self.assertions
        )

    @property
    def reads_body(self) -> bool:
        sources = {extract.source for extract in self.extracts}
        places = {assertion.place.name for assertion in self.assertions}
        return bool(sources & {Source.JSON, Source.BODY}) or "BODY" in places


@dataclass(frozen=True, slots=True)
class Scenario:
    steps: tuple[ScenarioStep, ...]

    @property
    def bindings(self) -> frozenset[str]:
        """Returns every binding that a `{{secret:binding}}` names."""
        return frozenset(
            name for step in self.steps for template in step.templates for name in template.bindings
        )


# The document as written.


class _Extract(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    var: str
    source: Source = msgspec.field(name="from")
    path: str = ""


class _Assertion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: AssertionKind
    op: str
    value: str | int | float | bool | None
    path: str = ""


class _Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    name: str = ""
    method: Method = Method.GET
    headers: dict[str, str] = {}
    body: str | dict[str, Any] | list[Any] | None = None
    extract: list[_Extract] = []
    asserted: list[_Assertion] = msgspec.field(name="assert", default_factory=list)


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    steps: list[_Step]


def read_scenario(document: object, *, strict: bool = True) -> Scenario:
    """Returns the scenario of a document.

    `strict` is false for documents that an older version stored. These may have a literal in a
    credential header, which only the next edit refuses.
    Raises: `BadScenario` if the document is invalid.
    """
    try:
        read = msgspec.convert(document, _Document)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BadScenario(_fault_text(str(error))) from None
    if not 1 <= len(read.steps) <= STEPS_MOST:
        raise BadScenario(f"must have 1 to {STEPS_MOST} steps")
    known: set[str] = set()
    steps = []
    for number, raw in enumerate(read.steps, 1):
        try:
            step = _step(number, raw, strict=strict)
            _demand_known(step, known)
        except BadScenario as bad:
            raise BadScenario(f"step {number} {bad}") from None
        known |= {extract.var for extract in step.extracts}
        steps.append(step)
    return Scenario(tuple(steps))


def with_present_names(document: dict[str, object]) -> dict[str, object]:
    """Returns the document with `kind` in place of `that` in assertions, as older clients write."""
    steps = document.get("steps")
    if not isinstance(steps, list):
        return document
    return {**document, "steps": [_step_with_present_names(step) for step in steps]}


def _step_with_present_names(step: object) -> object:
    if not isinstance(step, dict) or not isinstance(step.get("assert"), list):
        return step
    return {**step, "assert": [_assertion_with_present_names(each) for each in step["assert"]]}


def _assertion_with_present_names(assertion: object) -> object:
    if not isinstance(assertion, dict) or "that" not in assertion or "kind" in assertion:
        return assertion
    rest = {name: value for name, value in assertion.items() if name != "that"}
    return {"kind": assertion["that"], **rest}


def _fault_text(text: str) -> str:
    """Returns a decoder's message without input values, which its enum errors repeat."""
    said, _, place = text.partition(" - at `")
    if said.startswith("Invalid enum value"):
        said = "is not a known value"
    return f"{place.rstrip('`').removeprefix('$.')} {said[:1].lower()}{said[1:]}".strip()


def _demand_known(step: ScenarioStep, known: set[str]) -> None:
    used = {name for template in step.templates for name in template.variables}
    used |= {name for assertion in step.assertions for name in assertion.value.variables}
    unknown = sorted(used - known)
    if unknown:
        raise BadScenario(f"uses {{{{{unknown[0]}}}}}, which no earlier step extracts")


def _step(number: int, raw: _Step, *, strict: bool) -> ScenarioStep:
    if len(raw.name) > NAME_LONGEST or any(c < " " for c in raw.name):
        raise BadScenario(f"name must be at most {NAME_LONGEST} printable characters")
    url, host = _url(raw.url)
    headers = _headers(raw.headers, strict=strict)
    body, context = _body(raw, headers)
    if len(raw.extract) > EXTRACTS_MOST:
        raise BadScenario(f"extract contains more than {EXTRACTS_MOST}")
    if len(raw.asserted) > ASSERTIONS_MOST:
        raise BadScenario(f"assert contains more than {ASSERTIONS_MOST}")
    return ScenarioStep(
        number=number,
        name=raw.name,
        method=raw.method.value,
        url=url,
        host=host,
        headers=headers,
        body=body,
        body_context=context,
        extracts=tuple(_extract(n, item) for n, item in enumerate(raw.extract, 1)),
        assertions=tuple(_assertion(n, item) for n, item in enumerate(raw.asserted, 1)),
    )


def _url(text: str) -> tuple[Template, str]:
    """Validates the URL with a letter in place of each placeholder.

    Scheme, host and port cannot contain placeholders.
    """
    if len(text) > URL_LONGEST:
        raise BadScenario(f"url is longer than {URL_LONGEST} characters")
    template = _template("url", text)
    authority = re.match(r"[a-z][a-z0-9+.-]*://[^/?#]*", text)
    if authority is None or "{{" in authority[0]:
        raise BadScenario(
            "url must begin with http:// or https:// and a host, without placeholders"
        )
    if "{{" in text.partition("#")[2]:
        raise BadScenario("url has a placeholder in its fragment, which is not sent")
    sample = "".join(part if isinstance(part, str) else "x" for part in template.parts)
    try:
        return template, read_url(sample).host
    except BadTarget as bad:
        raise BadScenario(f"url {bad}") from None


def _headers(given: Mapping[str, str], *, strict: bool) -> tuple[tuple[str, Template], ...]:
    if len(given) > HEADERS_MOST:
        raise BadScenario(f"headers contains more than {HEADERS_MOST}")
    headers: list[tuple[str, Template]] = []
    seen: set[str] = set()
    for name, value in given.items():
        wrong = header_fault(name, value)
        if wrong:
            raise BadScenario(f"headers {wrong}")
        lowered = name.lower()
        if lowered in seen:
            raise BadScenario(f"headers names {lowered} twice")
        seen.add(lowered)
        template = _template(f"header {lowered}", value)
        if strict and is_credential_header(name) and not template.is_one_secret:
            raise BadScenario(f"header {lowered} must be exactly one {{{{secret:binding}}}}")
        headers.append((name, template))
    return tuple(headers)


def _body(raw: _Step, headers: tuple[tuple[str, Template], ...]) -> tuple[Template | None, Context]:
    if raw.body is None or raw.body == "":
        return None, Context.TEXT
    if raw.method in (Method.GET, Method.HEAD):
        raise BadScenario(f"body is not sent with {raw.method}")
    is_document = not isinstance(raw.body, str)
    text = json.dumps(raw.body) if is_document else str(raw.body)
    if len(text) > BODY_LONGEST:
        raise BadScenario(f"body is longer than {BODY_LONGEST} characters")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise BadScenario("body contains a character that cannot be sent")
    kinds = [t.parts[0] for name, t in headers if name.lower() == "content-type" and t.parts]
    kind = str(kinds[0]).lower() if kinds else ""
    if is_document or "json" in kind or (not kind and _LOOKS_LIKE_JSON.match(text)):
        context = Context.JSON
    elif kind.startswith("application/x-www-form-urlencoded"):
        context = Context.FORM
    else:
        context = Context.TEXT
    return _template("body", text), context


def _extract(number: int, raw: _Extract) -> Extract:
    where = f"extract {number}"
    if not re.fullmatch(BINDING, raw.var):
        raise BadScenario(f"{where} var must match ^{BINDING}$")
    if raw.source is Source.JSON:
        return Extract(raw.var, raw.source, path=_path(where, raw.path))
    if raw.source is Source.HEADER:
        if not _HEADER_NAME.fullmatch(raw.path):
            raise BadScenario(f"{where} path must be the name of a header")
        return Extract(raw.var, raw.source, header=raw.path.lower())
    if raw.path:
        raise BadScenario(f"{where} path is not used with from {raw.source}")
    return Extract(raw.var, raw.source)


_OPERATORS = {
    "eq": Operator.EQUAL,
    "ne": Operator.UNEQUAL,
    "lt": Operator.LESS,
    "gt": Operator.MORE,
    "contains": Operator.CONTAINS,
}
_NUMERIC = frozenset({"eq", "ne", "lt", "gt"})
_ALLOWED = {
    AssertionKind.STATUS: _NUMERIC,
    AssertionKind.LATENCY_MS: _NUMERIC,
    AssertionKind.JSON: frozenset(_OPERATORS),
    AssertionKind.BODY_CONTAINS: frozenset({"contains", "ne"}),
}
_PLACES = {
    AssertionKind.STATUS: "STATUS",
    AssertionKind.LATENCY_MS: "RESPONSE_TIME",
    AssertionKind.BODY_CONTAINS: "BODY",
}


def _assertion(number: int, raw: _Assertion) -> Assertion:
    where = f"assert {number}"
    if raw.op not in _ALLOWED[raw.kind]:
        known = ", ".join(sorted(_ALLOWED[raw.kind]))
        raise BadScenario(f"{where} op of {raw.kind} must be one of {known}")
    operator = _OPERATORS[raw.op]
    if raw.kind is AssertionKind.JSON:
        place = Operand("BODY", _path(where, raw.path))
    elif raw.path:
        raise BadScenario(f"{where} path is not used with {raw.kind}")
    else:
        place = Operand(_PLACES[raw.kind])
    if raw.kind in (AssertionKind.STATUS, AssertionKind.LATENCY_MS):
        _demand_number(where, raw.value)
    elif raw.kind is AssertionKind.BODY_CONTAINS and (
        not isinstance(raw.value, str) or not raw.value
    ):
        raise BadScenario(f"{where} value must be a text")
    negated = raw.kind is AssertionKind.BODY_CONTAINS and raw.op == "ne"
    is_text = isinstance(raw.value, str)
    if isinstance(raw.value, str) and len(raw.value) > VALUE_LONGEST:
        raise BadScenario(f"{where} value is longer than {VALUE_LONGEST} characters")
    value = _template(f"{where} value", raw.value if is_text else json.dumps(raw.value))
    if value.bindings:
        raise BadScenario(f"{where} value must not contain a secret")
    return Assertion(
        kind=raw.kind,
        place=place,
        operator=Operator.CONTAINS if negated else operator,
        value=value,
        is_text=is_text and raw.kind not in (AssertionKind.STATUS, AssertionKind.LATENCY_MS),
        negated=negated,
    )


def _demand_number(where: str, value: object) -> None:
    if isinstance(value, str):
        value = int(value) if re.fullmatch("[0-9]{1,9}", value) else value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**9:
        raise BadScenario(f"{where} value must be a whole number of at most 9 digits")


def _path(where: str, text: str) -> tuple[str | int, ...]:
    try:
        path = read_path(text)
    except BadCondition as bad:
        raise BadScenario(f"{where} path {bad}") from None
    if not path:
        raise BadScenario(f"{where} path is required")
    return path


def _template(where: str, text: Any) -> Template:
    try:
        return read_template(text)
    except BadTemplate:
        said = "contains {{ that begins neither {{name}} nor {{secret:binding}}"
        raise BadScenario(f"{where} {said}") from None
