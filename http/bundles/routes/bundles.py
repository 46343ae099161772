"""Configuration as code: plan, apply and export of a project's monitors and services.

Objects that these routes apply belong to the provider `api`, each to one bundle by its name.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
import trio
from msgspec import UNSET, UnsetType

from ....storage.accounts.queries.operations import select_operation
from ....storage.accounts.rows import OperationRow
from ....storage.bundles.rules.bundle import BYTES_MOST, SECTIONS, read_bundle
from ....storage.bundles.rules.bundle import Bundle as Wanted
from ....storage.bundles.rules.bundle_diff import API
from ....storage.bundles.rules.bundle_owner import DEFAULT_NAME, name_fault, path_of
from ....storage.bundles.transactions.adopt_proposals import adopt_after_application
from ....storage.bundles.transactions.apply_bundle import (
    APPLY,
    apply_bundle,
    plan_bundle,
)
from ....storage.bundles.transactions.apply_in_background import begin_application
from ....storage.bundles.transactions.bundle_context import ApplySource, EntryContext
from ....storage.bundles.transactions.export_bundle import EXPORT, export_bundle
from ....storage.bundles.transactions.release_bundle import Selection, release_bundle
from ....storage.core.refusal import expect
from ....storage.engine.lock_refusal import refused_when_locked
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.monitor_defaults import monitor_defaults_in_force
from ...accounts.routes.operations import operation_json
from ...accounts.schemas.organizations import BundlePlan, Operation
from ...monitors.routes.monitors import usable_regions
from ...wire.route import MANY_WRITES_SECONDS, Request, Response, Route
from ..schemas.bundles import (
    Bundle,
    BundleRelease,
    BundleRequest,
    ReleasedObjects,
)

_ONE: Final = "/api/v1/projects/{projectID}/bundle"
T = TypeVar("T")
# RFC 7240.
RESPOND_ASYNC: Final = "respond-async"


class NameQuery(msgspec.Struct, frozen=True):
    """Name of a bundle."""

    name: str = DEFAULT_NAME

    @property
    def path(self) -> str:
        """Returns the path that its objects store. Raises: Refused for an invalid name."""
        expect("name", name_fault(self.name))
        return path_of(self.name)


class BundleQuery(NameQuery, frozen=True):
    """Name of a bundle, and whether it takes over objects of people and of other bundles."""

    take_over: bool = False


async def plan(ask: Request) -> BundlePlan:
    applied = _source(ask)
    return await plan_of(ask, await _bundle_of(ask), applied)


async def plan_of(ask: Request, bundle: Wanted, applied: ApplySource) -> BundlePlan:
    context = ask.context
    async with context.pool.transaction("read_bundle_terms", read_only=True) as tx:
        terms = await _terms(ask, tx)
    project = ask.ids["projectID"]
    changes = await plan_bundle(context.pool, project, bundle, applied, terms)
    return BundlePlan(changes=changes, applied=False)


async def apply(ask: Request) -> BundlePlan | Response:
    applied = _source(ask)
    bundle = await _bundle_of(ask)
    if not prefers_async(ask.headers.get("prefer", "")):
        return await apply_of(ask, bundle, applied)
    row = await begin_of(ask, bundle, _document(ask), applied)
    headers = {"Preference-Applied": RESPOND_ASYNC}
    return Response(body=operation_json(row), status=202, headers=headers)


def prefers_async(header: str) -> bool:
    """Returns whether a Prefer header (RFC 7240) asks for an answer before the end of the work."""
    wanted = (one.partition(";")[0].strip().lower() for one in header.split(","))
    return RESPOND_ASYNC in wanted


async def begin_of(
    ask: Request, bundle: Wanted, document: dict[str, Any], applied: ApplySource
) -> OperationRow:
    """Begins an application in the background and returns its operation.

    `document` is the JSON form of the bundle.
    """
    project = ask.ids["projectID"]

    async def work(tx: Tx) -> OperationRow:
        uid = await begin_application(tx, project, bundle, document, applied, ask.context.keyring)
        row = await select_operation(tx, uid)
        assert row is not None, "it was inserted"
        return row

    with refused_when_locked():
        return await ask.context.pool.transact("begin_application", work)


async def apply_of(ask: Request, bundle: Wanted, applied: ApplySource) -> BundlePlan:
    async def work(tx: Tx) -> BundlePlan:
        terms = await _terms(ask, tx)
        project = ask.ids["projectID"]
        changes = await apply_bundle(tx, project, bundle, applied, terms)
        return BundlePlan(changes=changes, applied=True)

    with refused_when_locked():
        found = await ask.context.pool.transact("apply_bundle", work)
    ask.context.on_edit()
    if bundle.people:
        await adopt_after_application(ask.context.pool, ask.ids["projectID"])
    return found


async def export(ask: Request) -> Bundle:
    context = ask.context
    async with context.pool.transaction("export_bundle", read_only=True) as tx:
        found = await export_bundle(tx, ask.who, ask.ids["projectID"], context.keyring)
    return Bundle(**found)


async def _bundle_of(ask: Request) -> Wanted:
    """Parses the body. Raises: Refused invalid with the entry and its field."""
    return await aside(ask, lambda: read_bundle(_document(ask)))


def _document(ask: Request) -> dict[str, Any]:
    body = msgspec.structs.asdict(ask.body)
    return {name: value for name, value in body.items() if value is not UNSET}


async def aside(ask: Request, work: Callable[[], T]) -> T:
    """Runs `work` in a thread, since a large bundle would block the event loop for a second."""
    return await trio.to_thread.run_sync(work, limiter=ask.context.readers)


async def release(ask: Request) -> ReleasedObjects:
    path, project = ask.query.path, ask.ids["projectID"]
    body: BundleRelease = BundleRelease() if ask.body is None else ask.body
    listed = {name: _listed(getattr(body, name)) for name in SECTIONS}
    selected = Selection({name: uids for name, uids in listed.items() if uids is not None})

    async def work(tx: Tx) -> dict[str, int]:
        return await release_bundle(tx, ask.who, project, path, selected)

    with refused_when_locked():
        numbers = await ask.context.pool.transact("release_bundle", work)
    return ReleasedObjects(**numbers)


def _listed(uids: list[str] | UnsetType) -> list[str] | None:
    return None if uids is UNSET else uids


def _source(ask: Request) -> ApplySource:
    query: BundleQuery = ask.query
    return source_of(ask, query.path, take_over=query.take_over)


def source_of(
    ask: Request, path: str, *, take_over: bool = False, revision: str = ""
) -> ApplySource:
    """Returns the origin of an application that the caller of a request starts."""
    who = replace(ask.who, provider=API)
    return ApplySource(principal=who, path=path, take_over=take_over, revision=revision)


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
    answer_seconds=MANY_WRITES_SECONDS,
    names_once=True,
    query=BundleQuery,
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
        summary="Apply a bundle to the project, atomically. With `Prefer: respond-async`, in the"
        " background.",
        answers_too={202: Operation},
    ),
    Route(
        method="POST",
        path=f"{_ONE}/release",
        action=APPLY,
        scope=_PROJECT,
        handler=release,
        summary="Release objects of a bundle, so that people can edit them.",
        tag="bundles",
        query=NameQuery,
        body=BundleRelease,
        body_optional=True,
        answer=ReleasedObjects,
        also=(409,),
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
