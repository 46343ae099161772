"""Spec of each monitor type: names, types, bounds, secrets and help of its settings.

The API validation, the console forms and the documentation use the same specs, so that they agree.
Pure. The module of a monitor type contains its `SPEC`.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

CONFIG_KEYS_MOST = 64
HEADERS_MOST = 32
HEADER_NAME_LONGEST = 128
HEADER_VALUE_LONGEST = 4_096
TEXT_LONGEST = 1_024
SECRET_LONGEST = 4_096
BODY_LONGEST = 65_536
# Deeper documents cannot be read everywhere: Python's own limit depends on the call depth.
DOCUMENT_DEPTH_MOST = 64

# Headers with a credential: encrypted, never shown, dropped when the origin changes.
CREDENTIAL_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "api-key",
        "x-auth-token",
        "auth-token",
        "x-access-token",
        "access-token",
        "private-token",
    }
)
# Headers that frame the message. Only the client sets them; otherwise one request could be read as
# two.
FRAMING_HEADERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

# Grammar of the names by which a document refers to secrets.
BINDING = "[a-z][a-z0-9_-]{0,39}"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECRET_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_INTEGER = re.compile(r"-?[0-9]{1,18}")


class MonitorType(StrEnum):
    """Type of a monitor. A server version may support only some of these types."""

    HTTP = "http"
    TCP = "tcp"
    ICMP = "icmp"
    DNS = "dns"
    TLS = "tls"
    GRPC = "grpc"
    COMPOSITE = "composite"
    POSTGRES = "postgres"
    MYSQL = "mysql"
    REDIS = "redis"
    PROMQL = "promql"
    RABBITMQ = "rabbitmq"
    WEBSOCKET = "websocket"
    SSH = "ssh"
    SMTP = "smtp"
    DOMAIN = "domain"
    SYNTHETIC = "synthetic"
    PUSH = "push"
    ASYNC_CANARY = "async_canary"


# Types whose probe can use TLS with one target, so that [CERT_EXPIRY] has a value.
CERTIFIED = frozenset(
    {
        MonitorType.HTTP,
        MonitorType.TLS,
        MonitorType.GRPC,
        MonitorType.WEBSOCKET,
        MonitorType.PROMQL,
        MonitorType.SMTP,
        MonitorType.POSTGRES,
        MonitorType.MYSQL,
        MonitorType.REDIS,
        MonitorType.RABBITMQ,
    }
)


@dataclass(frozen=True, slots=True)
class SpecFault:
    """One fault: the field by its API name (`config.headers`), and the reason."""

    field: str
    message: str


class TargetForm(StrEnum):
    URL = "url"
    HOST_PORT = "host_port"
    HOST = "host"
    NAME = "name"
    NONE = "none"


class FieldType(StrEnum):
    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    HEADERS = "headers"
    SECRET_NAME = "secret_name"  # the name of a project secret, never its value
    DOCUMENT = "document"  # an object, or its JSON text; `longest` counts the text
    IDS = "ids"  # ids of monitors, a list or comma-separated


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One config key.

    `longest` counts characters. `least` and `most` bound an integer; `most` also bounds the number
    of ids. A `secret` value is encrypted and never returned. For headers this applies to those in
    `CREDENTIAL_HEADERS`.
    """

    name: str
    type: FieldType
    help: str
    default: object = None
    required: bool = False
    secret: bool = False
    multiline: bool = False
    choices: tuple[str, ...] = ()
    least: int = 0
    most: int = 0
    longest: int = TEXT_LONGEST
    # Title of the section of the form, "" for the section of the type.
    group: str = ""
    # Returns a document in the form in which it is stored.
    canonical: Callable[[dict[str, object]], dict[str, object]] | None = None


Config = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Settings of one monitor type.

    `rule` validates settings that depend on each other, with defaults applied. `schemes` are the
    allowed schemes of a URL target. `default_port` is that of a HOST_PORT target without a port; a
    setting of the type can select another one. Settings `<bindings>_<binding>_ref` name the project
    secrets that a document refers to. `probed` is false if no probe runs. `placeholders` are those
    that have a value for this type.
    """

    type: MonitorType
    help: str
    target: TargetForm
    schemes: tuple[str, ...] = ()
    default_port: int | None = None
    methods: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    placeholders: frozenset[str] = frozenset()
    bindings: str = ""
    declares: Callable[[Config], Collection[str]] | None = None
    probed: bool = True
    rule: Callable[[str, Config], list[SpecFault]] | None = None

    def read(self, config: Config) -> tuple[dict[str, object], list[SpecFault]]:
        """Returns the config in native types with its defaults, and all its faults."""
        known = {field.name: field for field in self.fields}
        values = {field.name: field.default for field in self.fields if field.default is not None}
        faults: list[SpecFault] = []
        if len(config) > CONFIG_KEYS_MOST:
            return values, [SpecFault("config", f"has more than {CONFIG_KEYS_MOST} keys")]
        for name, value in config.items():
            field = known.get(name) or self._binding(name)
            if field is None and self.bindings and name.startswith(self.bindings):
                said = f"is not of the form {self.bindings}_<binding>_ref"
                faults.append(SpecFault(f"config.{name[:64]}", said))
            elif field is None:
                faults.append(SpecFault(f"config.{name[:64]}", f"is not a setting of {self.type}"))
            elif value is not None and value != "":
                read, wrong = _READERS[field.type](field, value)
                if wrong:
                    faults.append(SpecFault(f"config.{name}", wrong))
                else:
                    values[name] = read
        missing = [f.name for f in self.fields if f.required and not config.get(f.name)]
        faults += [SpecFault(f"config.{name}", "is required") for name in missing]
        return values, faults

    def _binding(self, name: str) -> Field | None:
        if not self.bindings or not re.fullmatch(f"{self.bindings}_{BINDING}_ref", name):
            return None
        return Field(name=name, type=FieldType.SECRET_NAME, help="Names a project secret.")

    def declared(self, config: Config) -> list[Field]:
        """Returns the settings that the document of this config needs, one per binding."""
        names = sorted(self.declares(config)) if self.declares else []
        fields = (self._binding(f"{self.bindings}_{name}_ref") for name in names)
        return [field for field in fields if field is not None]

    def bindings_of(self, config: Config) -> dict[str, str]:
        """Returns the settings that name the secret of a binding, by the binding."""
        before = len(self.bindings) + 1
        return {
            name[before : -len("_ref")]: name
            for name, value in config.items()
            if value and self._binding(name) is not None
        }


Read = tuple[object, str]


def is_credential_header(name: str) -> bool:
    return name.lower() in CREDENTIAL_HEADERS


def _text(field: Field, value: object) -> Read:
    if not isinstance(value, str):
        return None, "must be a string"
    if len(value) > field.longest:
        return None, f"is longer than {field.longest} characters"
    if "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value):
        return None, "contains a character that cannot be sent"
    if not field.multiline and any(c < " " or c == "\x7f" for c in value):
        return None, "contains a control character"
    return value, ""


def _integer(field: Field, value: object) -> Read:
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None, "must be a whole number"
    if not field.least <= value <= field.most:
        return None, f"must be {field.least} to {field.most}"
    return value, ""


def _boolean(_field: Field, value: object) -> Read:
    if isinstance(value, str):
        value = {"true": True, "false": False}.get(value.strip().lower(), value)
    return (value, "") if isinstance(value, bool) else (None, "must be true or false")


def _choice(field: Field, value: object) -> Read:
    if value in field.choices:
        return value, ""
    return None, f"must be one of {', '.join(field.choices)}"


def _secret_name(_field: Field, value: object) -> Read:
    if isinstance(value, str) and _SECRET_NAME.fullmatch(value):
        return value, ""
    return None, "must be the name of a project secret"


def _ids(field: Field, value: object) -> Read:
    """Reads a list of ids as strings, or one string with commas."""
    if isinstance(value, str):
        value = [part for part in value.split(",") if part.strip()]
    if not isinstance(value, list):
        return None, "must be a list of ids"
    given = cast("list[object]", value)
    if len(given) > field.most:
        return None, f"must be at most {field.most} ids"
    ids = [item.strip().lower() for item in given if isinstance(item, str)]
    # A string of commas contains no id.
    if not ids or len(ids) < len(given) or not all(_ID.fullmatch(item) for item in ids):
        return None, "must be a list of ids"
    if len(set(ids)) < len(ids):
        return None, "must not contain an id twice"
    return ids, ""


def _headers(_field: Field, value: object) -> Read:
    """Reads an object of strings, or its JSON text: an agent's job has only strings."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None, "must be an object of header names and values"
    if not isinstance(value, Mapping):
        return None, "must be an object of header names and values"
    if len(value) > HEADERS_MOST:
        return None, f"contains more than {HEADERS_MOST} headers"
    seen: set[str] = set()
    for name, content in cast("Mapping[object, object]", value).items():
        wrong = header_fault(name, content)
        if wrong:
            return None, wrong
        lowered = cast("str", name).lower()
        if lowered in seen:
            return None, f"names {lowered} twice"
        seen.add(lowered)
    return dict(value), ""


def _document(field: Field, value: object) -> Read:
    """Reads a JSON object. The rule of the monitor type checks its content."""
    if isinstance(value, Mapping):
        try:
            text = json.dumps(value)
        except (ValueError, TypeError, RecursionError):
            return None, "must be a JSON object"
    elif isinstance(value, str):
        text = value
    else:
        return None, "must be an object, or its JSON text"
    if len(text) > field.longest:
        return None, f"is longer than {field.longest} characters"
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None, "is not JSON"
    if not isinstance(read, dict):
        return None, "must be a JSON object"
    if not _is_shallow(read):
        return None, f"is nested deeper than {DOCUMENT_DEPTH_MOST}"
    return (read if field.canonical is None else field.canonical(read)), ""


def _is_shallow(document: object) -> bool:
    level = [document]
    for _ in range(DOCUMENT_DEPTH_MOST):
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner += cast("dict[str, object]", item).values()
            elif isinstance(item, list):
                inner += cast("list[object]", item)
        level = inner
    return not any(isinstance(item, dict | list) for item in level)


def header_fault(name: object, content: object) -> str:
    """Returns the reason to refuse a header, or "" if it is allowed.

    The reason names the header only if the name is a valid token, and never the value.
    """
    if not isinstance(name, str) or len(name) > HEADER_NAME_LONGEST or not _TOKEN.fullmatch(name):
        return "contains a header name that is not a token"
    if name.lower() in FRAMING_HEADERS:
        return f"must not set {name}"
    if not isinstance(content, str):
        return f"gives {name} a value that is not a string"
    if len(content) > HEADER_VALUE_LONGEST:
        return f"gives {name} a value longer than {HEADER_VALUE_LONGEST} characters"
    if content != content.strip() or any(
        c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in content
    ):
        return f"gives {name} a value with a control character or a space at its end"
    return ""


_READERS: dict[FieldType, Callable[[Field, object], Read]] = {
    FieldType.TEXT: _text,
    FieldType.INTEGER: _integer,
    FieldType.BOOLEAN: _boolean,
    FieldType.CHOICE: _choice,
    FieldType.HEADERS: _headers,
    FieldType.SECRET_NAME: _secret_name,
    FieldType.DOCUMENT: _document,
    FieldType.IDS: _ids,
}
