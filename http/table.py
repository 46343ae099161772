"""The one table of routes."""

from typing import Final

from . import stream
from .route import Route
from .routes import monitors, push, results

ROUTES: Final[tuple[Route, ...]] = (
    *monitors.ROUTES,
    *results.ROUTES,
    *push.ROUTES,
    *stream.ROUTES,
)
