"""A route is data: the app, the OpenAPI document, the access matrix and the docs are made of it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

from ...storage.accounts.rules.access import Permission, Principal, Scope
from .agent_credential import AgentCredential
from .app_context import AppContext

BODY_LARGEST = 1 << 20
PUBLIC_BODY_LARGEST = 64 << 10
FORM_LARGEST = 64 << 10
# A ladder has up to 20 steps, each with a time and 20 of whom it pages.
FORM_FIELDS_MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request, once it may be answered: who asks, for what, and what they gave."""

    context: AppContext
    # None on routes that ask nobody, and where a token in the query is to open one.
    principal: Principal | None
    scope: Scope | None
    ids: Mapping[str, UUID]
    # Path parameters that are no ids, such as a push token.
    words: Mapping[str, str] = field(repr=False)
    body: Any
    query: Any = field(repr=False)
    method: str
    client: str
    # On what only agents call: whose token it was.
    agent: AgentCredential | None = None
    # The SHA-256 of the session cookie, where that is the credential.
    session_hash: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: str = field(default="", repr=False)
    # What a form gave, each name with all its values.
    form: Mapping[str, list[str]] = field(default_factory=dict, repr=False)
    # Of a tolerant route: all values of each query parameter, and whether the body was cut.
    values: Mapping[str, list[str]] = field(default_factory=dict, repr=False)
    body_cut: bool = False

    @property
    def who(self) -> Principal:
        assert self.principal is not None, "this route asks for a credential"
        return self.principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer that is more than a body: headers, a status of its own, or bytes as they are."""

    body: Any = field(default=None, repr=False)
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content_type: str = "application/json"


class NoQuery(msgspec.Struct, frozen=True):
    """A route without query parameters; unknown ones are ignored."""


Handler = Callable[[Request], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """`path` names its parameters in braces; one that ends in ID is a UUID. `scope` says which of
    them the scope is found by, as (kind, parameter); None where the action has no scope."""

    method: str
    path: str
    action: Permission
    handler: Handler
    summary: str
    # The group of the operation in the OpenAPI document; empty where the route is in no document.
    tag: str = ""
    scope: tuple[str, str] | None = None
    body: Any = None
    # A body of any kind is read, bounded, and passed over.
    body_ignored: bool = False
    # Whether a body may be left out altogether.
    body_optional: bool = False
    query: type[msgspec.Struct] = NoQuery
    # The handler judges repeated parameters (`ask.values`, `ask.query` is None), and a body that is
    # ignored is cut at its bound instead of refused.
    tolerant: bool = False
    answer: Any = None
    status: int = 200
    # Other statuses that come with the same answer.
    statuses_too: tuple[int, ...] = ()
    # What else it may refuse with, beyond what any route may.
    also: tuple[int, ...] = ()
    content_type: str = "application/json"
    # Where the query says in which form: the others, each with a shape of its own.
    content_types_too: tuple[str, ...] = ()
    body_largest: int = BODY_LARGEST
    # A name that an object of the body gives twice is refused: somebody's words would be lost.
    names_once: bool = False
    in_document: bool = True
    # A page for people: refusals are pages too, and a missing credential leads to the sign-in.
    page: bool = False
    # The body is a form (application/x-www-form-urlencoded): `ask.form`.
    form: bool = False
    form_largest: int = FORM_LARGEST
    # A `token` in the query opens it without a credential; the handler judges it, and finds in
    # `ask.principal` whether there was one.
    token_opens: bool = False
    # HEAD works wherever GET does, but on what changes something.
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
    """Returns the routes that read a setting of the installation and replace it. `action` is the
    permission that the transaction of `put` enforces; `summaries` are those of GET and PUT."""
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
