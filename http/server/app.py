"""The application: the route table on Quart-Trio, and answers for all other requests."""

import re
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from typing import Any

from quart import Response, request
from quart.routing import QuartMap, QuartRule
from quart_trio import QuartTrio
from werkzeug.exceptions import MethodNotAllowed

from ..ui.shell.error_pages import problem_page
from ..wire.app_context import AppContext
from ..wire.errors import Problem, body_of
from ..wire.finished_response import FinishedResponse, finished
from ..wire.route import Route
from .request_body import BODY_LARGEST
from .request_pipeline import answer, is_served, lower_headers

RESPONSE_SECONDS = 60
# A route that reads this much above its limit knows that the body is too large.
_EXCESS = 1 << 17


def make_app(context: AppContext, routes: Iterable[Route]) -> QuartTrio:
    """Builds the application. Tests call it without a running daemon."""
    routes = list(routes)
    app = QuartTrio("leadline", static_folder=None)
    # Each route has a limit of its own, and a refusal with 413.
    app.config["MAX_CONTENT_LENGTH"] = max(
        BODY_LARGEST, *(one.form_largest + _EXCESS for one in routes)
    )
    app.config["RESPONSE_TIMEOUT"] = RESPONSE_SECONDS
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    served = [route for route in routes if is_served(route, context)]
    app.url_map = _url_map(tuple((route.path, _methods(route)) for route in served))
    for route in served:
        app.view_functions[_endpoint(route.path, _methods(route))] = _view(context, route)
    for status, code in ((404, "not_found"), (405, "method_not_allowed"), (413, "body_too_large")):
        app.register_error_handler(status, _teller(context, code))
    return app


def largest_of(routes: Iterable[Route]) -> Callable[[str], int]:
    """Returns a function from a path to the largest body that the middleware accepts there."""
    large = [
        (
            re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route.path))),
            route.form_largest + _EXCESS,
        )
        for route in routes
        if route.form_largest > BODY_LARGEST
    ]

    def largest(path: str) -> int:
        return next((most for form, most in large if form.fullmatch(path)), BODY_LARGEST)

    return largest


class _MatchedRule(QuartRule):
    """Rule that matches paths and builds no URLs. Werkzeug compiles two functions for each rule,
    which build its URL: nine tenths of the compilation of the map."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:  # noqa: ARG002 - the signature of Werkzeug
        return _refuse_building


def _refuse_building(*_: object, **__: object) -> tuple[str, str]:
    raise AssertionError("the route table builds no URLs")


@lru_cache(maxsize=4)
def _url_map(served: tuple[tuple[str, tuple[str, ...]], ...]) -> QuartMap:
    """Compiles the routes, given as (path, methods), to a map.

    The applications of one process share the map, since it contains no view functions; a test
    process creates some hundred applications.
    """
    url_map = QuartMap()
    url_map.strict_slashes = True
    url_map.merge_slashes = False
    for path, methods in served:
        rule = _MatchedRule(
            path.replace("{", "<").replace("}", ">"),
            methods=methods,
            endpoint=_endpoint(path, methods),
            provide_automatic_options=False,
        )
        url_map.add(rule)
    return url_map


def _methods(route: Route) -> tuple[str, ...]:
    if route.method == "GET" and route.head:
        return ("GET", "HEAD")
    return (route.method,)


def _endpoint(path: str, methods: tuple[str, ...]) -> str:
    return f"{methods[0]} {path}"


def _view(context: AppContext, route: Route) -> Callable[..., Awaitable[Response]]:
    methods = _methods(route)

    async def view(**parameters: str) -> Response:
        if request.method not in methods:
            # Werkzeug routes HEAD with GET.
            raise MethodNotAllowed(valid_methods=methods)
        request.scope["leadline.route"] = route.path  # type: ignore[typeddict-unknown-key]
        arrived = request._get_current_object()  # type: ignore[attr-defined]
        reply = await answer(route, context, arrived, parameters)
        return _quart_response(reply) if isinstance(reply, FinishedResponse) else reply

    return view


def _quart_response(reply: FinishedResponse) -> Response:
    response = Response(reply.body, status=reply.status)
    # Quart adds a content type to every response.
    response.headers.pop("Content-Type", None)
    for name, value in reply.headers.items():
        response.headers[name] = value
    return response


def _is_for_people() -> bool:
    """Returns whether a browser requested a page."""
    wanted = "text/html" in request.headers.get("Accept", "")
    return wanted and not request.path.startswith(("/api/", "/auth/"))


def _teller(context: AppContext, code: str) -> Callable[[Exception], Awaitable[Any]]:
    async def tell(error: Exception) -> Response:
        problem = Problem(code)
        if _is_for_people():
            headers = lower_headers(request)
            page = await problem_page(problem, request.path, context, headers)
            return _quart_response(finished(page))
        response = Response(body_of(code), status=problem.status, content_type="application/json")
        allowed = getattr(error, "valid_methods", None)
        if allowed:
            response.headers["Allow"] = ", ".join(sorted(allowed))
        return response

    return tell
