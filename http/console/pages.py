"""Every page of the console, for the one table of routes."""

from typing import Final

from ..route import Route
from . import assets
from .channels import page as channels
from .monitor import page as monitor
from .monitor_form import page as monitor_form
from .overview import page as overview
from .secrets import page as secrets
from .signin import page as signin

ROUTES: Final[tuple[Route, ...]] = (
    *signin.ROUTES,
    *overview.ROUTES,
    *monitor.ROUTES,
    *monitor_form.ROUTES,
    *secrets.ROUTES,
    *channels.ROUTES,
    *assets.ROUTES,
)
