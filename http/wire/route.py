"""Route as data: source of the app, the OpenAPI document, the access matrix and the docs."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from ...storage.accounts.rules.access import Permission, Principal, Scope
from .agent_credential import AgentCredential
from .app_context import AppContext
from .own_paths import base_path_now

BODY_LARGEST = 1 << 20
PUBLIC_BODY_LARGEST = 64 << 10
FORM_LARGEST = 64 << 10
# Until the answer of a route begins that writes thousands of objects.
MANY_WRITES_SECONDS = 900.0
# An escalation policy has up to 20 steps, each with a delay and 20 targets.
FORM_FIELDS_MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Admitted request with its principal, scope and decoded parameters."""

    context: AppContext
    # None on routes without authentication, and if a token in the query is the credential.
    principal: Principal | None
    scope: Scope | None
    ids: Mapping[str, UUID]
    # Path parameters other than ids, such as a push token.
    words: Mapping[str, str] = field(repr=False)
    body: Any
    query: Any = field(repr=False)
    method: str
    client: str
    # Credential of the agent, on agent routes only.
    agent: AgentCredential | None = None
    # SHA-256 of the session cookie, if the session is the credential.
    session_hash: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: str = field(default="", repr=False)
    # Form fields, each name with all its values.
    form: Mapping[str, list[str]] = field(default_factory=dict, repr=False)
    # Only on a route that takes files: the content of each by its field.
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    # Only on a tolerant route: all values of each query parameter, the beginning of the body, and
    # whether it was cut.
    values: Mapping[str, list[str]] = field(default_factory=dict, repr=False)
    body_cut: bool = False
    body_start: bytes = field(default=b"", repr=False)

    @property
    def who(self) -> Principal:
        assert self.principal is not None, "this route asks for a credential"
        return self.principal

    @property
    def base_url(self) -> str:
        """Address of the installation for links in answers, without a slash at the end."""
        host = self.headers.get("host", "")
        here = f"http://{host}{base_path_now()}"
        return (self.context.options.public_base_url or here).rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """Answer with headers, its own status, or raw bytes."""

    body: Any = field(default=None, repr=False)
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content_type: str = "application/json"


class NoQuery(msgspec.Struct, frozen=True):
    """A route without query parameters; unknown ones are ignored."""


Handler = Callable[[Request], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Definition of a route.

    `path` contains its parameters in braces; a parameter whose name ends in ID is a UUID. `scope`
    is (kind, parameter) of the object that determines the scope; None if the action has no scope.
    """

    method: str
    path: str
    action: Permission
    handler: Handler
    summary: str
    # Group of the operation in the OpenAPI document; empty if the route is not in the document.
    tag: str = ""
    scope: tuple[str, str] | None = None
    body: Any = None
    # A body of any type is read up to the limit and not decoded.
    body_ignored: bool = False
    # Whether the body can be omitted.
    body_optional: bool = False
    query: type[msgspec.Struct] = NoQuery
    # The handler validates repeated parameters (`ask.values`, `ask.query` is None). An ignored body
    # is cut at its limit, not refused.
    tolerant: bool = False
    answer: Any = None
    status: int = 200
    # Further statuses, each with the type of its answer.
    answers_too: Mapping[int, Any] = field(default_factory=dict)
    # Statuses of refusals, in addition to those common to all routes.
    also: tuple[int, ...] = ()
    content_type: str = "application/json"
    # Further content types that the query can select, each with its own schema.
    content_types_too: tuple[str, ...] = ()
    body_largest: int = BODY_LARGEST
    # Seconds until the answer begins, for a route that takes longer than others.
    answer_seconds: float | None = None
    # A name that occurs twice in an object of the body is refused, as one value would be lost.
    names_once: bool = False
    in_document: bool = True
    # A console screen: refusals are HTML too, and a missing credential redirects to the sign-in.
    page: bool = False
    # The body is a form (application/x-www-form-urlencoded): `ask.form`.
    form: bool = False
    form_largest: int = FORM_LARGEST
    # The form can have files (multipart/form-data): `ask.files`.
    takes_files: bool = False
    # A `token` in the query is accepted in place of a credential. The handler validates it;
    # `ask.principal` is None without a credential.
    token_opens: bool = False
    # The project and the service can also be named by their slugs, for pipelines whose token cannot
    # read the lists.
    takes_slugs: bool = False
    # Answered without the web framework: no form, and the answer is not a stream. A user's request
    # only reads, because a disconnect does not cancel it; it cancels the request of an agent.
    short: bool = False
    # HEAD is routed with GET, except on routes that change state.
    head: bool = True

    @property
    def parameters(self) -> list[str]:
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


def setting_routes(
    path: str,
    read: Handler,
    put: Handler,
    action: Permission,
    *,
    tag: str,
    body: Any,
    answer: Any,
    summaries: tuple[str, str],
) -> tuple[Route, Route]:
    """Returns the routes that read and replace a setting of the installation.

    `action` is the permission that the transaction of `put` enforces. `summaries` are those of GET
    and PUT.
    """
    read_summary, put_summary = summaries
    return (
        Route(
            method="GET",
            path=path,
            action=action,
            handler=read,
            summary=read_summary,
            tag=tag,
            answer=answer,
        ),
        Route(
            method="PUT",
            path=path,
            action=action,
            handler=put,
            summary=put_summary,
            tag=tag,
            body=body,
            answer=answer,
        ),
    )
