"""Route of the support hours of a service."""

from typing import Final

from ....storage.services.rows import ServiceRow
from ....storage.services.transactions.lock_service import EDIT
from ....storage.services.transactions.set_support_hours import put_support_hours
from ...oncall.routes.weekly_windows import window_given, window_json, windows_spelt
from ...wire.route import Request, Route
from ..schemas.support_hours import PutSupportHours, SupportHours


def support_json(row: ServiceRow) -> SupportHours:
    windows = [window_json(text) for text in row.support_hours]
    return SupportHours(timezone=row.support_zone, windows=windows)


def support_text(row: ServiceRow) -> str:
    """Returns the hours and the zone for a screen, empty for a service without support hours."""
    if not row.support_hours:
        return ""
    hours = windows_spelt(row.support_hours).replace("\n", ", ")
    return f"{hours} ({row.support_zone or 'UTC'})"


async def write_support_hours(ask: Request) -> SupportHours:
    windows = [window_given(f"windows[{place}]", one) for place, one in enumerate(ask.body.windows)]
    async with ask.context.pool.transaction("put_support_hours") as tx:
        row = await put_support_hours(
            tx,
            ask.who,
            ask.ids["projectID"],
            ask.ids["serviceID"],
            ask.body.timezone,
            windows,
        )
    return support_json(row)


ROUTES: Final = (
    Route(
        method="PUT",
        path="/api/v1/projects/{projectID}/services/{serviceID}/support-hours",
        action=EDIT,
        scope=("service", "serviceID"),
        handler=write_support_hours,
        summary="Set the support hours of the service.",
        tag="services",
        body=PutSupportHours,
        answer=SupportHours,
        also=(409,),
    ),
)
