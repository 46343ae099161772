"""The application: the one table of routes on Quart-Trio, and answers for what is in no table."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import MethodNotAllowed

from ..storage.rules.access import Need
from .console.problems import problem_page
from .context import Context
from .errors import Problem, body_of
from .pipeline import answer, as_response
from .route import Route

# Longer than any body that a route takes; each route has its own bound below it.
BODY_LARGEST = 2 << 20
RESPONSE_SECONDS = 60


def make_app(context: Context, routes: Iterable[Route]) -> QuartTrio:
    """Needs no running daemon: tests make one too."""
    app = QuartTrio("leadline", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = BODY_LARGEST
    app.config["RESPONSE_TIMEOUT"] = RESPONSE_SECONDS
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    for route in routes:
        if route.action.need is not Need.AGENT or context.options.has_agents:
            _add(app, context, route)
    for status, code in ((404, "not_found"), (405, "method_not_allowed"), (413, "body_too_large")):
        app.register_error_handler(status, _teller(code))
    return app


def _add(app: QuartTrio, context: Context, route: Route) -> None:
    rule = route.path.replace("{", "<").replace("}", ">")
    methods = [route.method]
    if route.method == "GET" and route.head:
        methods.append("HEAD")

    async def view(**parameters: str) -> Response:
        if request.method not in methods:
            # Whoever routes GET routes HEAD with it.
            raise MethodNotAllowed(valid_methods=methods)
        request.scope["leadline.route"] = route.path  # type: ignore[typeddict-unknown-key]
        return await answer(route, context, request._get_current_object(), parameters)  # type: ignore[attr-defined]

    app.add_url_rule(
        rule,
        f"{route.method} {route.path}",
        view,
        methods=methods,
        provide_automatic_options=False,
    )


def _is_for_people() -> bool:
    """Whether a browser asked for a page that is in no table."""
    wanted = "text/html" in request.headers.get("Accept", "")
    return wanted and not request.path.startswith(("/api/", "/auth/"))


def _teller(code: str) -> Callable[[Exception], Awaitable[Any]]:
    async def tell(error: Exception) -> Response:
        problem = Problem(code)
        if _is_for_people():
            return as_response(problem_page(problem, request.path))
        response = Response(body_of(code), status=problem.status, content_type="application/json")
        allowed = getattr(error, "valid_methods", None)
        if allowed:
            response.headers["Allow"] = ", ".join(sorted(allowed))
        return response

    return tell
