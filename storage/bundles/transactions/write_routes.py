"""Write of a bundle's alert routes, after the services that they name."""

from collections.abc import Sequence

from ...core.refusal import Refused
from ...engine.pools import Tx
from ...incidents.rows import RouteListRow
from ...incidents.tables.alert_routes import ensure_route_marks
from ...incidents.transactions.put_alert_routes import RouteDraft, put_held_routes
from ...monitors.transactions.write_batch import MonitorWriteBatch
from ..rules.bundle import Bundle
from ..rules.bundle_oncall import ROUTES_UID
from .bundle_context import ApplySource, BundleContext
from .compared_section import ComparedSection, compare_section, write_section
from .oncall_entries import (
    ROUTES_DEFAULTS,
    route_drafts_in_words,
    routes_in_words,
    wanted_routes,
)
from .write_services import service_words

RouteDrafts = tuple[list[RouteDraft], RouteDraft | None]


def compare_routes(
    bundle: Bundle, place: BundleContext, applied: ApplySource
) -> ComparedSection[RouteListRow, RouteDrafts]:
    """Compares the alert routes.

    Raises:
        Refused with the faulty route.
    """
    words = service_words(place)
    by_uid = {row.uid: words[row.id] for row in place.services} | {
        own: uid for uid, own in place.coming_services.items()
    }
    ids = {str(row.uid): row.uid for row in place.services}
    ids.update({row.slug: row.uid for row in place.services})
    ids.update({uid: row.uid for uid, row in place.my_services.items()})
    ids.update(place.coming_services)
    drafts = {uid: wanted_routes(entry, ids, place) for uid, entry in bundle.routes.items()}
    for rules, default in drafts.values():
        _expect_routable(bundle, place, rules, default)
    found = ComparedSection("routes", drafts, place.my_oncall.routes, {})
    compare_section(
        found,
        bundle,
        place.oncall.route_lists,
        applied,
        {
            row.id: routes_in_words(place.oncall.routes, words, place)
            for row in place.my_oncall.routes.values()
        },
        {
            uid: route_drafts_in_words(rules, default, by_uid, place)
            for uid, (rules, default) in drafts.items()
        },
        ROUTES_DEFAULTS,
    )
    return found


def _expect_routable(
    bundle: Bundle, place: BundleContext, rules: Sequence[RouteDraft], default: RouteDraft | None
) -> None:
    """Checks the targets with the services that the project will have.

    Raises:
        Refused invalid with the route.
    """
    wanted = {
        own: bool(bundle.services[uid].escalation_policy)
        for uid, own in place.coming_services.items()
    }
    wanted.update({row.uid: row.escalation_policy is not None for row in place.services})
    for uid, row in place.my_services.items():
        wanted[row.uid] = bool(bundle.services[uid].escalation_policy)
    every = [(f"routes.rules[{at}]", one) for at, one in enumerate(rules)]
    every += [] if default is None else [("routes.default", default)]
    for path, one in every:
        if (one.service is None) == (one.policy is None):
            raise Refused("invalid", path, "must have one of service and escalation_policy")
        if one.service is not None and not wanted[one.service]:
            rule = "names a service without an escalation policy, which pages nobody"
            raise Refused("invalid", f"{path}.service", rule)


async def write_routes(
    tx: Tx,
    together: MonitorWriteBatch,
    place: BundleContext,
    wanted: ComparedSection[RouteListRow, RouteDrafts],
    applied: ApplySource,
) -> None:
    """Writes the alert routes, after the services.

    Raises:
        Refused with the faulty route.
    """
    home, is_plan = place.home, together.is_plan
    if not is_plan and wanted.drafts:
        await ensure_route_marks(tx, home.org, home.id)

    async def put(_: str, drafts: RouteDrafts, __: RouteListRow | None) -> None:
        # A plan has no changed services, whose policies the write would check.
        if not is_plan:
            await put_held_routes(tx, applied.principal, home, *drafts)

    ids = {ROUTES_UID: home.uid}
    order = list(wanted.acts)
    await write_section(tx, home.org, wanted, order, put, ids, applied, is_plan=is_plan)
