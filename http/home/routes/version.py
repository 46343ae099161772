"""Route of the build version."""

import platform
from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ...wire.route import Request, Route
from ...wire.schema import known
from ..schemas import BuildInfo


async def read_version(ask: Request) -> BuildInfo:
    options = ask.context.options
    return BuildInfo(
        version=options.version,
        commit=known(options.commit or None),
        python_version=platform.python_version(),
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/version",
        action=Permission(Need.ANYONE, basic=True),
        handler=read_version,
        summary="Read the build of this process.",
        tag="version",
        answer=BuildInfo,
    ),
)
