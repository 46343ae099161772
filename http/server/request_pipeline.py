"""Request pipeline, with refusals in an order that reveals nothing too early.

The order is: credential, cross-site, tenancy, role, media type, size, body, query, form, then the
handler.
"""

import json
import logging
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs
from uuid import UUID

import msgspec
import quart
from msgspec import structs

from ...storage.accounts.queries.resource_scopes import select_scope
from ...storage.accounts.queries.visible_projects import find_named_service
from ...storage.accounts.rules.access import AccessDecision, Need, Principal, Scope, may
from ...storage.core.decode_error import field_fault
from ...storage.core.refusal import Refused, Unavailable
from ...storage.core.slug import is_slug
from ...storage.engine.pools import LockTimeout, Rejected
from ..accounts.console.profile import PATH as PROFILE
from ..auth.csrf import is_cross_site
from ..ui.render import redirect
from ..ui.shell.error_pages import problem_page
from ..ui.shown_time import show_times_of
from ..wire.agent_credential import AgentCredential, identify_agent
from ..wire.app_context import AppContext
from ..wire.authenticate import authenticate
from ..wire.client_address import client_address
from ..wire.content_encoding import compressed
from ..wire.errors import (
    INVALID_BODY,
    LOCKED,
    Problem,
    fault_in_words,
    fault_of_body,
    problem_of,
)
from ..wire.finished_response import FinishedResponse, finished, refused
from ..wire.local_credentials import AuthenticatedCaller
from ..wire.multipart import BadForm, MultipartForm, read_multipart
from ..wire.route import FORM_FIELDS_MOST, NoQuery, Request, Response, Route
from .arrived_request import ArrivedRequest

log = logging.getLogger("leadline.http")
access_log = logging.getLogger("leadline.access")

# Kinds whose scope never changes, and which only a request deletes.
_LASTING: Final = frozenset({"organization", "project"})

# Only for console screens: redirects to the setup of the second factor.
SECOND_FACTOR_OWED = "second_factor_owed"

# A bundle or a deletion holds its locks until its commit.
LOCKED_RETRY_SECONDS: Final = "5"

# A path that can be logged. An unknown name of another form could be a misplaced value.
_LOGGED_PATH: Final = re.compile(r"[a-z_]{1,40}(?:\.[a-z_]{1,40}|\[(?:\d+|\.\.\.)\]){0,16}")

_NUL = b"\\u0000"
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


async def answer(
    route: Route, context: AppContext, request: ArrivedRequest, parameters: Mapping[str, str]
) -> FinishedResponse | quart.Response:
    """Answers a request. No exception propagates.

    A refusal is JSON with exactly one field, or a page on a console route. Only a stream is an
    object of the framework.
    """
    in_shell = True
    ask: Request | None = None
    show_times_of(None)
    try:
        ask = await _admit(route, context, request, parameters)
        found = await route.handler(ask)
        if route.method != "GET" and ask.principal is not None:
            # A write must be visible on the public pages immediately.
            context.forget()
            context.on_written(ask.scope)
        reply = _respond(route, found)
        return reply if isinstance(reply, quart.Response) else await compressed(reply, ask.headers)
    except Problem as caught:
        problem = caught
    except Refused as error:
        problem = problem_of(error)
    except Unavailable as error:
        problem = _database_failure(route, context, error)
        # A database that did not answer in time is not asked again for the shell.
        in_shell = False
    except Exception as error:
        # Log before the first await: a disconnect would cancel the task and lose the error.
        is_known = ask is not None and (ask.principal is not None or ask.agent is not None)
        problem = _unexpected(route, context, request, error, is_known=is_known)
    if route.page and problem.code == SECOND_FACTOR_OWED:
        return finished(redirect(PROFILE))
    if route.page:
        headers = lower_headers(request)
        path = request.full_path.rstrip("?")
        found = await problem_page(problem, path, context, headers, in_shell=in_shell)
        return await compressed(finished(found, route.status), headers)
    return refused(problem)


def is_served(route: Route, context: AppContext) -> bool:
    """Returns whether this process has the route: those of agents need a region for agents."""
    return route.action.need is not Need.AGENT or context.options.has_agents


def lower_headers(request: ArrivedRequest) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def _database_failure(route: Route, context: AppContext, error: Unavailable) -> Problem:
    """Returns 500, except for a lock, or before the process was ready for the first time."""
    if not context.was_ready():
        return Problem("not_ready", headers={"Retry-After": "1"})
    if isinstance(error, LockTimeout):
        log.warning(
            "a request waited too long for a lock",
            extra={"route": route.path, "method": route.method},
        )
        return Problem(LOCKED, status=503, headers={"Retry-After": LOCKED_RETRY_SECONDS})
    log.error(
        "database failure during a request",
        extra={"route": route.path, "method": route.method, "cause": str(error)},
    )
    return Problem("internal_error")


def _unexpected(
    route: Route,
    context: AppContext,
    request: ArrivedRequest,
    error: Exception,
    *,
    is_known: bool,
) -> Problem:
    """Returns 400 if the database refuses NUL of the query. Otherwise logs and returns 500.

    A caller without a credential cannot fill the log: it causes one traceback per minute.
    """
    if isinstance(error, Rejected):
        # PostgreSQL has no text with this character. Most routes refuse it by their own rule.
        for name, value in request.args.items(multi=True):
            if "\x00" in value:
                return Problem(f"{name}: must not contain the character NUL")
    is_traced = is_known or not context.tracebacks.take("", 1, context.clock())
    log.error(
        "request raised an exception",
        exc_info=error if is_traced else None,
        extra={"route": route.path, "method": route.method, "cause": type(error).__name__},
    )
    return Problem("internal_error")


async def _admit(
    route: Route, context: AppContext, request: ArrivedRequest, parameters: Mapping[str, str]
) -> Request:
    headers = lower_headers(request)
    identified: AuthenticatedCaller | None = None
    agent: AgentCredential | None = None
    scope: Scope | None = None
    ids, words, malformed = _read_parameters(parameters)
    by_token = route.token_opens and bool(request.args.get("token"))
    if route.action.need is Need.AGENT:
        agent = await _demand_agent(context, headers)
    elif route.action.need is not Need.NOBODY and not by_token:
        identified = await _demand_credential(context, headers, request.method)
        show_times_of(identified.principal)
        if malformed and route.takes_slugs:
            ids, malformed = await _find_named(context, identified.principal, parameters)
        scope = await _demand_access(context, route, identified.principal, ids, malformed)
    elif malformed:
        raise Problem("not_found")
    body_cut, body_start = await _skip_body(route, request)
    body = await _read_body(route, request)
    query = None if route.tolerant else _read_query(route, request)
    form = await _read_form(route, request)
    return Request(
        context=context,
        principal=identified.principal if identified else None,
        agent=agent,
        scope=scope,
        ids=ids,
        words=words,
        body_cut=body_cut,
        body_start=body_start,
        body=body,
        query=query,
        values=_query_values(route, request) if route.tolerant else {},
        method=request.method,
        client=client_address(_peer(request), headers, context.options.trusted_proxies),
        session_hash=identified.session_hash if identified else None,
        headers=headers,
        path=request.path,
        form=form.fields,
        files=form.files,
    )


async def _demand_credential(
    context: AppContext, headers: Mapping[str, str], method: str
) -> AuthenticatedCaller:
    identified = await authenticate(context, headers)
    if identified is None:
        raise Problem("unauthorized")
    if identified.by_cookie and is_cross_site(method, headers, context.options.public_base_url):
        raise Problem("forbidden")
    return identified


async def _demand_agent(context: AppContext, headers: Mapping[str, str]) -> AgentCredential:
    found = await identify_agent(context.pool, headers, context.options.agents)
    if found is None:
        raise Problem("unauthorized")
    return found


async def _demand_access(
    context: AppContext,
    route: Route,
    principal: Principal,
    ids: Mapping[str, UUID],
    malformed: bool,
) -> Scope | None:
    if malformed:
        raise Problem("not_found")
    scope = None
    if route.scope is not None:
        kind, parameter = route.scope
        scope = await _find_scope(context, kind, ids[parameter])
        if scope is None:
            raise Problem("not_found")
    match may(principal, route.action, scope):
        case AccessDecision.HIDDEN:
            raise Problem("not_found")
        case AccessDecision.REFUSED if route.page and principal.owes_second_factor:
            raise Problem(SECOND_FACTOR_OWED, status=403)
        case AccessDecision.REFUSED:
            raise Problem("forbidden")
        case AccessDecision.ALLOWED:
            return scope


async def _find_scope(context: AppContext, kind: str, uid: UUID) -> Scope | None:
    async def read() -> Scope | None:
        async with context.pool.statement("find_scope") as tx:
            return await select_scope(tx, kind, uid)

    # Other objects can move or be deleted by the loops.
    return await (context.scopes.get((kind, uid), read) if kind in _LASTING else read())


def _read_parameters(
    parameters: Mapping[str, str],
) -> tuple[dict[str, UUID], dict[str, str], bool]:
    """Returns the ids, the other parameters, and whether an id is malformed."""
    ids: dict[str, UUID] = {}
    words: dict[str, str] = {}
    malformed = False
    for name, text in parameters.items():
        if not name.endswith("ID"):
            words[name] = text
            continue
        if _is_id(text):
            ids[name] = UUID(text)
        else:
            malformed = True
    return ids, words, malformed


def _is_id(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return len(text) == 36


async def _find_named(
    context: AppContext, principal: Principal, parameters: Mapping[str, str]
) -> tuple[dict[str, UUID], bool]:
    """Returns the ids of a project and a service that slugs name, and whether there are none."""
    project, service = parameters["projectID"], parameters["serviceID"]
    if not all(is_slug(text) or _is_id(text) for text in (project, service)):
        return {}, True
    async with context.pool.statement("find_named_service") as tx:
        found = await find_named_service(tx, principal, project.lower(), service.lower())
    return ({}, True) if found is None else ({"projectID": found[0], "serviceID": found[1]}, False)


async def _skip_body(route: Route, request: ArrivedRequest) -> tuple[bool, bytes]:
    """Reads a body of any type; returns whether it was cut at its bound, and its beginning."""
    if not route.body_ignored:
        return False, b""
    if route.tolerant:
        return await _read_start(request, route.body_largest)
    data = await read_limited(request, route.body_largest)
    if data is None:
        raise Problem("body_too_large")
    return False, data


async def _read_start(request: ArrivedRequest, most: int) -> tuple[bool, bytes]:
    """Returns whether the body is larger than `most`, and its first `most` bytes."""
    data = bytearray()
    async for chunk in request.body:
        data += chunk
        if len(data) > most:
            return True, bytes(data[:most])
    return False, bytes(data)


async def _read_body(route: Route, request: ArrivedRequest) -> Any:
    if route.body is None:
        return None
    media_type = request.mimetype
    data = await read_limited(request, route.body_largest)
    if data == b"" and route.body_optional:
        return None
    if media_type != "application/json":
        raise Problem("unsupported_media_type")
    if data is None:
        raise Problem("body_too_large")
    if _NUL in data:
        raise Problem(INVALID_BODY)
    decoder = _decoders.get(route.body)
    if decoder is None:
        decoder = _decoders[route.body] = msgspec.json.Decoder(route.body)
    try:
        body = decoder.decode(data)
        if route.names_once:
            # Only the names are checked here; the values were validated above.
            json.loads(data, object_pairs_hook=_expect_once, parse_int=str, parse_float=str)
        return body
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        problem = fault_of_body(error, route.body)
        if problem.code == INVALID_BODY:
            _log_invalid(route, str(error))
        raise problem from error


def _log_invalid(route: Route, text: str) -> None:
    """Logs which field made a body invalid. The response has no field, as it could be a value.

    A field that does not look like a name is logged as the object that contains it.
    """
    field, fault = field_fault(text)
    paths = (field, field.rpartition(".")[0])
    access_log.debug(
        "invalid JSON body",
        extra={
            "route": route.path,
            "method": route.method,
            "field": next((path for path in paths if _LOGGED_PATH.fullmatch(path)), ""),
            "fault": fault,
        },
    )


def _expect_once(pairs: list[tuple[str, Any]]) -> None:
    """Checks the pairs of one object; inner objects are checked first."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise Problem(f"{name[:64]}: is given twice")
        seen.add(name)


async def _read_form(route: Route, request: ArrivedRequest) -> MultipartForm:
    if not route.form:
        return MultipartForm()
    has_files = route.takes_files and request.mimetype == "multipart/form-data"
    if not has_files and request.mimetype != "application/x-www-form-urlencoded":
        raise Problem("unsupported_media_type")
    data = await read_limited(request, route.form_largest)
    if data is None:
        raise Problem("body_too_large")
    try:
        if has_files:
            given = read_multipart(data, request.headers["Content-Type"], FORM_FIELDS_MOST)
        else:
            given = MultipartForm(
                parse_qs(
                    data.decode(),
                    keep_blank_values=True,
                    max_num_fields=FORM_FIELDS_MOST,
                    errors="strict",
                )
            )
    except (BadForm, ValueError):
        raise Problem("the form cannot be read") from None
    if any("\x00" in value for values in given.fields.values() for value in values):
        raise Problem("the form cannot be read")
    return given


async def read_limited(request: ArrivedRequest, most: int) -> bytes | None:
    """Returns the body; None if it is larger than `most`."""
    if (request.content_length or 0) > most:
        return None
    data = bytearray()
    async for chunk in request.body:
        data += chunk
        if len(data) > most:
            return None
    return bytes(data)


def _read_query(route: Route, request: ArrivedRequest) -> Any:
    """Decodes the query. Ignores unknown parameters; refuses repeated non-list ones."""
    if route.query is NoQuery:
        return None
    given: dict[str, Any] = {}
    for name, is_list in _query_fields(route.query):
        values = request.args.getlist(name)
        if not values:
            continue
        if is_list:
            given[name] = values
        elif len(values) > 1:
            raise Problem(f"{name}: is given more than once")
        else:
            given[name] = values[0]
    try:
        return msgspec.convert(given, route.query, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(fault_in_words(str(error), route.query)) from error


def _query_values(route: Route, request: ArrivedRequest) -> dict[str, list[str]]:
    return {name: request.args.getlist(name) for name, _ in _query_fields(route.query)}


@cache
def _query_fields(query: type[msgspec.Struct]) -> tuple[tuple[str, bool], ...]:
    """Returns the name of each parameter, and whether it can be repeated."""
    return tuple((field.encode_name, _is_list(field.type)) for field in structs.fields(query))


def _is_list(kind: Any) -> bool:
    return isinstance(msgspec.inspect.type_info(kind), msgspec.inspect.ListType)


def _peer(request: ArrivedRequest) -> str:
    client = request.scope.get("client")
    return str(client[0]) if client else ""


def _respond(route: Route, found: Any) -> FinishedResponse | quart.Response:
    if isinstance(found, quart.Response):
        return found
    return finished(found if isinstance(found, Response) else Response(body=found), route.status)
