"""Configuration as code: plan, apply and export of a project's monitors and services.

Objects that these routes apply belong to the provider `api`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
import trio
from msgspec import UNSET

from ....storage.bundles.rules.bundle import BYTES_MOST, read_bundle
from ....storage.bundles.rules.bundle import Bundle as Wanted
from ....storage.bundles.rules.bundle_diff import API
from ....storage.bundles.transactions.apply_bundle import APPLY, apply_bundle, plan_bundle
from ....storage.bundles.transactions.bundle_context import ApplySource, EntryContext
from ....storage.bundles.transactions.export_bundle import EXPORT, export_bundle
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.monitor_defaults import monitor_defaults_in_force
from ...monitors.routes.monitors import usable_regions
from ...wire.route import Request, Route
from ..schemas.bundles import Bundle, BundlePlan, BundleRequest

_ONE: Final = "/api/v1/projects/{projectID}/bundle"
T = TypeVar("T")


async def plan(ask: Request) -> BundlePlan:
    return await plan_of(ask, await _bundle_of(ask))


async def plan_of(ask: Request, bundle: Wanted) -> BundlePlan:
    context = ask.context
    async with context.pool.transaction("read_bundle_terms", read_only=True) as tx:
        terms = await _terms(ask, tx)
    project = ask.ids["projectID"]
    changes = await plan_bundle(context.pool, project, bundle, _applied(ask), terms)
    return BundlePlan(changes=changes, applied=False)


async def apply(ask: Request) -> BundlePlan:
    return await apply_of(ask, await _bundle_of(ask))


async def apply_of(ask: Request, bundle: Wanted) -> BundlePlan:
    async def work(tx: Tx) -> BundlePlan:
        terms = await _terms(ask, tx)
        project = ask.ids["projectID"]
        changes = await apply_bundle(tx, project, bundle, _applied(ask), terms)
        return BundlePlan(changes=changes, applied=True)

    found = await ask.context.pool.transact("apply_bundle", work)
    ask.context.on_edit()
    return found


async def export(ask: Request) -> Bundle:
    context = ask.context
    async with context.pool.transaction("export_bundle", read_only=True) as tx:
        found = await export_bundle(tx, ask.who, ask.ids["projectID"], context.keyring)
    return Bundle(**found)


async def _bundle_of(ask: Request) -> Wanted:
    """Parses the body. Raises: Refused invalid with the entry and its field."""
    given: dict[str, Any] = {
        name: value
        for name, value in msgspec.structs.asdict(ask.body).items()
        if value is not UNSET
    }
    return await aside(ask, lambda: read_bundle(given))


async def aside(ask: Request, work: Callable[[], T]) -> T:
    """Runs `work` in a thread, since a large bundle would block the event loop for a second."""
    return await trio.to_thread.run_sync(work, limiter=ask.context.readers)


def _applied(ask: Request) -> ApplySource:
    return ApplySource(principal=replace(ask.who, provider=API))


async def _terms(ask: Request, tx: Tx) -> EntryContext:
    return EntryContext(
        keyring=ask.context.keyring,
        regions=await usable_regions(ask, tx),
        defaults=await monitor_defaults_in_force(tx),
        raw_days=ask.context.options.heartbeat_days,
    )


_PROJECT: Final = ("project", "projectID")

_take_bundle: Final = partial(
    Route,
    method="POST",
    action=APPLY,
    scope=_PROJECT,
    tag="bundles",
    body=BundleRequest,
    body_largest=BYTES_MOST,
    names_once=True,
    answer=BundlePlan,
    also=(409,),
)

ROUTES: Final = (
    _take_bundle(
        path=f"{_ONE}/plan",
        handler=plan,
        summary="Plan a bundle: the changes of an apply, without writing.",
    ),
    _take_bundle(
        path=f"{_ONE}/apply",
        handler=apply,
        summary="Apply a bundle to the project, atomically.",
    ),
    Route(
        method="GET",
        path=_ONE,
        action=EXPORT,
        scope=_PROJECT,
        handler=export,
        summary="Export the project as a bundle, except objects of file providers.",
        tag="bundles",
        answer=Bundle,
    ),
)
