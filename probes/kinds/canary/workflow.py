"""Parsed workflow of a canary: submit, correlate, completion, result and cleanup.

Pure. All unions are closed. An unknown key refuses the whole document, and the fault names it.
Faults name the location and never a value.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ...check.condition import BadCondition, read_path
from ...check.monitor_spec import BINDING, header_fault, is_credential_header
from ...check.target import BadTarget, read_url

KIND: Final = "async_transaction_v1"
CORRELATION: Final = "{{ correlation_id }}"

BINDINGS_MOST: Final = 8
HEADERS_MOST: Final = 16
HEADER_NAME_MOST: Final = 64
HEADER_VALUE_MOST: Final = 1_024
BODY_DEPTH_MOST: Final = 8
BODY_KEYS_MOST: Final = 64
BODY_ITEMS_MOST: Final = 32
BODY_BYTES_MOST: Final = 8_192
FIELDS_MOST: Final = 16
STATUSES_MOST: Final = 16
WORDS_MOST: Final = 16
RESERVED_HEADERS: Final = frozenset(
    {"idempotency-key", "host", "content-length", "transfer-encoding"}
)
# Placeholder value for validating a URL.
_SAMPLE: Final = "x"

Path = tuple[str | int, ...]
Url = Annotated[str, Meta(min_length=1, max_length=2_048)]
Word = Annotated[str, Meta(min_length=1, max_length=256)]
Seconds = Annotated[int, Meta(ge=1, le=3_600)]
Scalar = str | int | bool


class BadWorkflow(ValueError):
    """Raised for an invalid workflow. The text names the location and the fault, not a value."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    def __repr__(self) -> str:
        """Omits the values, because the document is stored encrypted."""
        return f"{type(self).__name__}(…)"


class Header(_Part, frozen=True, kw_only=True):
    """Request header: a literal value, or the binding of a secret."""

    name: Annotated[str, Meta(min_length=1, max_length=HEADER_NAME_MOST)]
    value: Annotated[str, Meta(max_length=HEADER_VALUE_MOST)] | UnsetType = UNSET
    secret_ref: str | UnsetType = UNSET


class HttpJson(_Part, frozen=True, kw_only=True, tag_field="kind", tag="http_json"):
    """Submission that posts a JSON document."""

    url: Url
    submit_timeout: Annotated[int, Meta(ge=1, le=60)]
    accepted_status: list[int]
    headers: list[Header] = []
    body: dict[str, Any]


class Multipart(_Part, frozen=True, kw_only=True):
    """Form field that contains the file, and the other fields."""

    field: Word
    filename: Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{1,100}$")]
    fields: dict[str, str] = {}


class MultipartFixture(_Part, frozen=True, kw_only=True, tag_field="kind", tag="multipart_fixture"):
    """Submission that posts a built-in file as multipart/form-data."""

    url: Url
    submit_timeout: Annotated[int, Meta(ge=1, le=60)]
    accepted_status: list[int]
    headers: list[Header] = []
    fixture_ref: Annotated[str, Meta(pattern="^[a-z][a-z0-9_-]{0,39}$")]
    multipart: Multipart


class FromJson(_Part, frozen=True, kw_only=True, tag_field="source", tag="response_json"):
    path: Word


class FromHeader(_Part, frozen=True, kw_only=True, tag_field="source", tag="response_header"):
    header_name: Word


class Events(_Part, frozen=True, kw_only=True):
    success_event: Word
    failure_events: list[Word] = []
    required_json_fields: list[Word] = []


class Sse(_Part, frozen=True, kw_only=True, tag_field="kind", tag="sse"):
    url: Url
    timeout: Seconds
    headers: list[Header] = []
    sse: Events


class Success(_Part, frozen=True, kw_only=True):
    path: Word
    value: Scalar


class Failure(_Part, frozen=True, kw_only=True):
    path: Word
    values: list[Scalar]


class Polling(_Part, frozen=True, kw_only=True):
    interval: Annotated[int, Meta(ge=1, le=60)]
    max_attempts: Annotated[int, Meta(ge=1, le=600)]
    success: Success
    failure: Failure | UnsetType = UNSET


class PollJson(_Part, frozen=True, kw_only=True, tag_field="kind", tag="poll_json"):
    url: Url
    timeout: Seconds
    headers: list[Header] = []
    poll: Polling


class ResultSpec(_Part, frozen=True, kw_only=True):
    """Assertions on the result. `max_latency` is in seconds, from the submission to its end."""

    max_latency: Seconds | UnsetType = UNSET
    required_json_fields: list[Word] = []
    lifecycle_path: Word | UnsetType = UNSET


class LifecyclePrefix(_Part, frozen=True, kw_only=True, tag_field="kind", tag="lifecycle_prefix"):
    """Cleanup by the target: the value at the result's `lifecycle_path` has this prefix."""

    prefix: Word


class NoCleanup(_Part, frozen=True, kw_only=True, tag_field="kind", tag="none"):
    """Explicit statement that the created objects remain."""

    acknowledged: Literal[True]


class _Document(_Part, frozen=True, kw_only=True):
    kind: Literal["async_transaction_v1"]
    secrets: dict[str, str] = {}
    submit: HttpJson | MultipartFixture
    correlate: FromJson | FromHeader
    completion: Sse | PollJson
    result: ResultSpec = ResultSpec()
    cleanup: LifecyclePrefix | NoCleanup


@dataclass(frozen=True, slots=True, repr=False)
class Workflow:
    """Validated workflow. `secrets` maps bindings to names of project secrets."""

    secrets: Mapping[str, str]
    submit: HttpJson | MultipartFixture
    correlate: FromJson | FromHeader
    completion: Sse | PollJson
    result: ResultSpec
    cleanup: LifecyclePrefix | NoCleanup

    @property
    def bindings(self) -> frozenset[str]:
        return frozenset(self.secrets)


def read_workflow(document: object, fixtures: Iterable[str] = ()) -> Workflow:
    """Returns the workflow of a document.

    `fixtures` are the names of the built-in files.
    Raises: `BadWorkflow`.
    """
    try:
        read = msgspec.convert(document, _Document)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BadWorkflow(_fault_text(str(error))) from None
    _check_secrets(read.secrets)
    _check_submit(read.submit, read.secrets, fixtures)
    _check_correlate(read.correlate)
    _check_completion(read.completion, read.secrets)
    _check_result(read.result, read.cleanup)
    return Workflow(
        read.secrets, read.submit, read.correlate, read.completion, read.result, read.cleanup
    )


def _fault_text(text: str) -> str:
    """Returns a decoder's message without input values, which its enum errors repeat."""
    said, _, place = text.partition(" - at `")
    said = said.replace("`", "")
    place = place.rstrip("`").removeprefix("$").lstrip(".")
    if said.startswith("Object contains unknown field "):
        name = said.removeprefix("Object contains unknown field ")
        return f"{place}.{name} is not known".lstrip(".")
    if said.startswith("Object missing required field "):
        name = said.removeprefix("Object missing required field ")
        return f"{place}.{name} is required".lstrip(".")
    if said.startswith("Invalid"):
        said = "is not a known value"
    return f"{place} {said[:1].lower()}{said[1:]}".strip()


def _check_secrets(secrets: Mapping[str, str]) -> None:
    if len(secrets) > BINDINGS_MOST:
        raise BadWorkflow(f"secrets contains more than {BINDINGS_MOST}")
    for binding, name in secrets.items():
        if not re.fullmatch(BINDING, binding):
            raise BadWorkflow(f"secrets: a binding must match ^{BINDING}$")
        if not name:
            raise BadWorkflow(f"secrets.{binding} names no secret")


def _check_submit(
    submit: HttpJson | MultipartFixture, secrets: Mapping[str, str], fixtures: Iterable[str]
) -> None:
    if "{{" in submit.url:
        raise BadWorkflow("submit.url must not contain a placeholder")
    _check_url("submit.url", submit.url)
    statuses = submit.accepted_status
    if not 1 <= len(statuses) <= STATUSES_MOST or any(not 200 <= one <= 299 for one in statuses):
        raise BadWorkflow(f"submit.accepted_status must be 1 to {STATUSES_MOST} of 200 to 299")
    _check_headers("submit.headers", submit.headers, secrets)
    if isinstance(submit, HttpJson):
        _check_body(submit.body)
    elif submit.fixture_ref not in set(fixtures):
        raise BadWorkflow("submit.fixture_ref names no fixture that is built in")
    else:
        _check_fields(submit.multipart)
        if any(header.name.lower() == "content-type" for header in submit.headers):
            raise BadWorkflow("submit.headers must not set content-type, which the form sets")


def _check_fields(form: Multipart) -> None:
    if len(form.fields) > BODY_KEYS_MOST:
        raise BadWorkflow(f"submit.multipart.fields contains more than {BODY_KEYS_MOST}")
    for name in (form.field, *form.fields):
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
            raise BadWorkflow("submit.multipart: a field's name must match ^[A-Za-z0-9._-]{1,64}$")
    said = json.dumps(form.fields, ensure_ascii=False)
    try:
        size = len(said.encode())
    except UnicodeEncodeError:
        raise BadWorkflow(
            "submit.multipart.fields contains characters that cannot be sent"
        ) from None
    if "{{" in said or size > BODY_BYTES_MOST:
        raise BadWorkflow(
            "submit.multipart.fields must contain no placeholder and"
            f" at most {BODY_BYTES_MOST} bytes"
        )


def _check_body(body: dict[str, Any]) -> None:
    keys = _count("submit.body", body, 1)
    if keys > BODY_KEYS_MOST:
        raise BadWorkflow(f"submit.body contains more than {BODY_KEYS_MOST} keys")
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (ValueError, UnicodeEncodeError):
        raise BadWorkflow("submit.body contains a value that JSON cannot represent") from None
    if size > BODY_BYTES_MOST:
        raise BadWorkflow(f"submit.body is longer than {BODY_BYTES_MOST} bytes")
    if "{{" in text:
        raise BadWorkflow("submit.body must not contain a placeholder")


def _count(where: str, value: object, depth: int) -> int:
    """Returns the total number of keys.

    Raises: `BadWorkflow` if the value is too deep or a list too long.
    """
    if depth > BODY_DEPTH_MOST:
        raise BadWorkflow(f"{where} is nested deeper than {BODY_DEPTH_MOST}")
    if isinstance(value, dict):
        return len(value) + sum(_count(where, one, depth + 1) for one in value.values())
    if isinstance(value, list):
        if len(value) > BODY_ITEMS_MOST:
            raise BadWorkflow(f"{where} has a list of more than {BODY_ITEMS_MOST}")
        return sum(_count(where, one, depth + 1) for one in value)
    return 0


def _check_headers(where: str, headers: list[Header], secrets: Mapping[str, str]) -> None:
    if len(headers) > HEADERS_MOST:
        raise BadWorkflow(f"{where} contains more than {HEADERS_MOST}")
    seen: set[str] = set()
    for header in headers:
        name = header.name.lower()
        if name in seen:
            raise BadWorkflow(f"{where} names a header twice")
        seen.add(name)
        _check_header(where, header, secrets)


def _check_header(where: str, header: Header, secrets: Mapping[str, str]) -> None:
    name = header.name.lower()
    if name in RESERVED_HEADERS:
        raise BadWorkflow(f"{where} must not set {name}")
    if isinstance(header.value, UnsetType) == isinstance(header.secret_ref, UnsetType):
        raise BadWorkflow(f"{where} must give either value or secret_ref")
    if isinstance(header.value, str):
        fault = header_fault(header.name, header.value)
        if not fault and is_credential_header(name):
            fault = f"must take {name} from a secret_ref"
        if not fault and "{{" in header.value:
            fault = f"must contain no placeholder in {name}"
        if fault:
            raise BadWorkflow(f"{where} {fault}")
        return
    fault = header_fault(header.name, "")
    if fault:
        raise BadWorkflow(f"{where} {fault}")
    if header.secret_ref not in secrets:
        raise BadWorkflow(f"{where}: the secret_ref of {name} is not declared in secrets")


def _check_correlate(correlate: FromJson | FromHeader) -> None:
    if isinstance(correlate, FromJson):
        read_json_path("correlate.path", correlate.path)
    elif header_fault(correlate.header_name, ""):
        raise BadWorkflow("correlate.header_name must be the name of a header")


def _check_completion(completion: Sse | PollJson, secrets: Mapping[str, str]) -> None:
    _check_placeholder("completion.url", completion.url)
    _check_url("completion.url", completion.url.replace(CORRELATION, _SAMPLE))
    _check_headers("completion.headers", completion.headers, secrets)
    if isinstance(completion, Sse):
        _check_events(completion.sse)
    else:
        _check_polling(completion.poll)


def _check_events(events: Events) -> None:
    if len(events.failure_events) > WORDS_MOST:
        raise BadWorkflow(f"completion.sse.failure_events contains more than {WORDS_MOST}")
    if events.success_event in events.failure_events:
        raise BadWorkflow("completion.sse.success_event is also in failure_events")
    _check_paths("completion.sse.required_json_fields", events.required_json_fields)


def _check_polling(poll: Polling) -> None:
    read_json_path("completion.poll.success.path", poll.success.path)
    if isinstance(poll.failure, UnsetType):
        return
    read_json_path("completion.poll.failure.path", poll.failure.path)
    values = poll.failure.values
    if not 1 <= len(values) <= WORDS_MOST:
        raise BadWorkflow(f"completion.poll.failure.values must be 1 to {WORDS_MOST}")
    # Compare with types, because True equals 1 in Python.
    said = [(type(value), value) for value in values]
    same_place = poll.failure.path == poll.success.path
    if same_place and (type(poll.success.value), poll.success.value) in said:
        raise BadWorkflow("completion.poll: one value is success and failure")


def _check_placeholder(where: str, url: str) -> None:
    """Requires exactly one placeholder, as a whole path segment or query value."""
    if url.count("{{") != 1 or url.count("}}") != 1 or url.count(CORRELATION) != 1:
        raise BadWorkflow(f"{where} must contain {CORRELATION} once, and no other placeholder")
    before, _, after = url.partition(CORRELATION)
    authority = re.match(r"https://[^/?#]+/", before)
    if authority is None or "#" in before:
        raise BadWorkflow(f"{where} must contain {CORRELATION} in its path or query")
    in_query = "?" in before
    begins = before.endswith("=") if in_query else before.endswith("/")
    ends = after[:1] in ("", "#", "&") if in_query else after[:1] in ("", "/", "?", "#")
    if not (begins and ends):
        raise BadWorkflow(f"{where}: {CORRELATION} must be a whole segment or a whole value")


def _check_url(where: str, text: str) -> None:
    try:
        read_url(text, ("https",))
    except BadTarget as bad:
        raise BadWorkflow(f"{where} {bad}") from None


def _check_result(result: ResultSpec, cleanup: LifecyclePrefix | NoCleanup) -> None:
    _check_paths("result.required_json_fields", result.required_json_fields)
    if not isinstance(result.lifecycle_path, UnsetType):
        read_json_path("result.lifecycle_path", result.lifecycle_path)
    elif isinstance(cleanup, LifecyclePrefix):
        raise BadWorkflow("result.lifecycle_path is required by cleanup")


def _check_paths(where: str, paths: list[str]) -> None:
    if len(paths) > FIELDS_MOST:
        raise BadWorkflow(f"{where} contains more than {FIELDS_MOST}")
    for path in paths:
        read_json_path(where, path)


def read_json_path(where: str, text: str) -> Path:
    """Returns the steps into a JSON document.

    Raises: `BadWorkflow` if the path is invalid or empty.
    """
    try:
        path = read_path(text)
    except BadCondition as bad:
        raise BadWorkflow(f"{where} {bad}") from None
    if not path:
        raise BadWorkflow(f"{where} is empty")
    return path
