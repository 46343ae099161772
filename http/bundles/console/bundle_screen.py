"""Bundle screen: export of a project's objects as a bundle, and changes by a bundle.

The screen shows the plan of a bundle before it is applied.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from ....storage.accounts.queries.operations import select_last_application
from ....storage.accounts.rows import OperationRow
from ....storage.accounts.rules.access import Rank, Scope, rank_in
from ....storage.bundles.queries import (
    select_bundles,
    select_files,
    select_revision,
    select_revision_changes,
    select_revisions,
)
from ....storage.bundles.rows import BundleRow, FileRow, RevisionRow
from ....storage.bundles.rules.apply_log import ApplyLog
from ....storage.bundles.rules.bundle import BYTES_MOST, read_bundle
from ....storage.bundles.rules.bundle_diff import (
    ChangeCounts,
)
from ....storage.bundles.rules.bundle_owner import DEFAULT_NAME, name_fault, name_of, path_of
from ....storage.bundles.rules.bundle_yaml import BadText, Text, read_text, write_text
from ....storage.bundles.transactions.apply_bundle import APPLY, STALE
from ....storage.bundles.transactions.apply_in_background import (
    BUSY,
    end_stopped,
    stop_application,
)
from ....storage.bundles.transactions.export_bundle import EXPORT, export_bundle
from ....storage.core.instant import SECOND, Instant
from ....storage.core.refusal import Refused, expect
from ....storage.engine.lock_refusal import LOCKED
from ....storage.engine.pools import Tx
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, value_of, whole_number
from ...ui.formatting import Moment, clock, count, duration, moment, number
from ...ui.render import page, redirect
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import MANY_WRITES_SECONDS, Request, Response, Route
from ...wire.scope_keys import org_of, project_of
from ..routes.bundles import apply_of, aside, begin_of, plan_of, source_of
from .plan_preview import (
    BundlePreview,
    action_words,
    preview_of,
    preview_of_revision,
    summary_of,
)

# A browser can send a character of YAML as three bytes.
FORM_BYTES_MOST: Final = 3 * BYTES_MOST + (1 << 16)
# A larger bundle is applied in the background.
APPLIED_AT_ONCE_MOST: Final = 200
REVISIONS_MOST: Final = 20
REFRESH_SECONDS: Final = 2
_STALE: Final = (
    "Not applied: the project or the text has changed since the plan was made. Check the new plan."
)
# The revision of no plan.
_NO_PLAN: Final = "none"


class BundleScreenQuery(msgspec.Struct, frozen=True):
    """Revision of a bundle whose differences are shown."""

    name: str = ""
    revision: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0


@dataclass(frozen=True, slots=True)
class RevisionItem:
    name: str
    revision: int
    applied: Moment
    by: str
    summary: str
    # Address of the differences, empty if they are not stored or the user may not see them.
    path: str


@dataclass(frozen=True, slots=True)
class ProgressItem:
    """Application that is running. `total` is 0 until the number of objects is known.

    `left` is the time left at the measured rate, empty if too little was measured.
    """

    operation: str
    done: int
    total: int
    stopping: str
    state: str
    left: str
    log: str

    @property
    def words(self) -> str:
        return f"{number(self.done)} of {number(self.total)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleForm:
    """Values of the form. `typed` is None for the current bundle."""

    typed: str | None = None
    name: str | None = None
    take_over: bool = False


@dataclass(frozen=True, slots=True)
class ImportNote:
    """Object of the other tool: `losses` are what it loses, or why it is not imported."""

    name: str
    losses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """Result of an import. `general` concerns all objects, `unused` are keys of the source.

    `left_out` counts the objects that are not imported, `further` the lines that are not shown.
    """

    tool: str
    imported: int
    left_out: int
    skipped: list[ImportNote]
    changed: list[ImportNote]
    unused: list[str]
    general: list[str]
    further: int


@dataclass(frozen=True, slots=True)
class BundleFileItem:
    provider: str
    path: str
    status: str
    error: str
    applied: Moment | None


async def render_bundle(ask: Request) -> Response:
    query: BundleScreenQuery = ask.query
    if not query.revision:
        return await render_form(ask, BundleForm())
    return await render_form(ask, BundleForm(), shown=await _differences(ask, query))


async def _differences(ask: Request, query: BundleScreenQuery) -> BundlePreview:
    """Returns the differences of a revision. As a plan, only project admins see them."""
    if rank_in(ask.who, _scope(ask)) < Rank.PROJECT_ADMIN:
        raise Problem("forbidden")
    expect("name", name_fault(query.name))
    path = path_of(query.name)
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("bundle_revision", read_only=True) as tx:
        row = await select_revision(tx, org, project, path, query.revision)
        changes = await select_revision_changes(tx, org, project, path, query.revision)
    if row is None or changes is None:
        raise Problem("not_found")
    return preview_of_revision(row, changes)


def _scope(ask: Request) -> Scope:
    assert ask.scope is not None, "the route has a scope"
    return ask.scope


async def render_import(ask: Request, typed: str, name: str, report: ImportReport) -> Response:
    """Shows the plan of an imported bundle, with its report."""
    form = BundleForm(typed=typed, name=name)
    text = await aside(ask, lambda: read_text(typed))
    try:
        bundle = await aside(ask, lambda: read_bundle(text.document))
        source = source_of(ask, path_of(name))
        plan = await plan_of(ask, bundle, source)
    except Refused as why:
        if why.code in ("forbidden", "not_found"):
            raise
        return await render_form(ask, form, error=_pointed_at(text, why), report=report)
    return await render_form(ask, form, shown=preview_of(source.path, plan.changes), report=report)


async def _stop(ask: Request) -> Response:
    """Stops an application. One that no process performs ends at once."""
    project, uid = ask.ids["projectID"], uuid_given(value_of(ask, "operation"))

    async def request(tx: Tx) -> bool:
        return await stop_application(tx, ask.who, project, uid)

    async def end(tx: Tx) -> bool:
        return await end_stopped(tx, uid)

    if await ask.context.pool.transact("stop_application", request):
        await ask.context.pool.transact("end_stopped", end)
    return redirect(f"/projects/{project}/bundle")


def _typed(ask: Request, verb: str) -> str:
    """Returns the text of the file to plan, else of the field, with LF for CRLF.

    An apply ignores the file: the field contains the planned text.
    """
    file = ask.files.get("file", b"") if verb == "plan" else b""
    if not file:
        return value_of(ask, "bundle").replace("\r\n", "\n")
    try:
        return file.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise Refused("invalid", "file", "is not UTF-8") from None


async def submit_bundle(ask: Request) -> Response:
    verb = value_of(ask, "act")
    if verb == "stop":
        return await _stop(ask)
    if verb not in ("plan", "apply"):
        raise Problem("Unknown action")
    fault = ""
    try:
        typed = _typed(ask, verb)
    except Refused as why:
        typed, fault = value_of(ask, "bundle").replace("\r\n", "\n"), f"{_sentence(why)}."
    form = BundleForm(
        typed=typed,
        name=stripped(ask, "name") or DEFAULT_NAME,
        take_over=value_of(ask, "take_over") != "",
    )
    if fault:
        return await render_form(ask, form, error=fault)
    try:
        text = await aside(ask, lambda: read_text(typed))
    except BadText as why:
        return await render_form(ask, form, error=f"{_sentence(why)}.")
    try:
        return await _submit(ask, verb, form, text)
    except Refused as why:
        if why.code in ("forbidden", "not_found"):
            raise
        return await render_form(ask, form, error=_pointed_at(text, why))


async def _submit(ask: Request, verb: str, form: BundleForm, text: Text) -> Response:
    """Plans a bundle, or applies exactly the plan that the form shows."""
    expect("name", name_fault(form.name or ""))
    bundle = await aside(ask, lambda: read_bundle(text.document))
    source = source_of(ask, path_of(form.name or ""), take_over=form.take_over)
    if verb == "plan":
        return await render_form(
            ask, form, shown=preview_of(source.path, (await plan_of(ask, bundle, source)).changes)
        )
    expected = replace(source, revision=value_of(ask, "revision") or _NO_PLAN)
    # A form of the previous release counts in the same field.
    removed = whole_number("disabled", value_of(ask, "disabled") or "0")
    if removed and value_of(ask, "allow") == "":
        shown = preview_of(source.path, (await plan_of(ask, bundle, source)).changes)
        error = f"Confirm that {shown.removal}."
        return await render_form(ask, form, shown=shown, error=error)
    try:
        if len(bundle.named) + removed > APPLIED_AT_ONCE_MOST:
            await begin_of(ask, bundle, text.document, expected)
            return redirect(f"/projects/{ask.ids['projectID']}/bundle")
        found = await apply_of(ask, bundle, expected)
    except Refused as why:
        if why.code != STALE:
            raise
        shown = preview_of(source.path, (await plan_of(ask, bundle, source)).changes)
        return await render_form(ask, form, shown=shown, error=_STALE)
    applied = BundleForm(name=form.name)
    return await render_form(
        ask, applied, shown=preview_of(source.path, found.changes, is_applied=True)
    )


def _pointed_at(text: Text, why: Refused) -> str:
    """Returns an error with its position, if it is about the text."""
    if why.code in (BUSY, LOCKED) or why.field == "name":
        return f"{_sentence(why)}."
    return f"{_sentence(text.place_of(why.field))}: {why}."


def _sentence(said: object) -> str:
    text = str(said)
    return text[:1].upper() + text[1:]


async def render_form(
    ask: Request,
    form: BundleForm,
    *,
    shown: BundlePreview | None = None,
    error: str = "",
    report: ImportReport | None = None,
) -> Response:
    """Returns the screen. `report` is that of the import that created the text."""
    org, key = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction("console_bundle", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        project = frame.place.uid
        document = await export_bundle(tx, ask.who, project, ask.context.keyring)
        files = [row for row in await select_files(tx) if row.project == project]
        bundles = await select_bundles(tx, org, key)
        revisions = await select_revisions(tx, org, key, REVISIONS_MOST)
        last = await select_last_application(tx, org, key)
        now = tx.now
    text = form.typed
    if text is None:
        text = await aside(ask, lambda: write_text(document))
    name = form.name or (name_of(bundles[0].path) if len(bundles) == 1 else DEFAULT_NAME)
    progress = progress_of(last, now)
    may_apply = rank_in(ask.who, _scope(ask)) >= Rank.PROJECT_ADMIN
    answer = page(
        "bundles/console/bundle_screen.html",
        status=400 if error else 200,
        frame=frame,
        contents=_summary(document),
        text=text,
        is_typed=form.typed is not None,
        name=name,
        take_over=form.take_over,
        shown=shown,
        error=error,
        report=report,
        progress=progress,
        refresh_seconds=REFRESH_SECONDS,
        failure=_failure(last, revisions, now),
        bundles=[_bundle(row) for row in bundles],
        revisions=[_revision(row, now, project if may_apply else None) for row in revisions],
        files=[_file(row, now) for row in files],
        may_apply=may_apply,
    )
    refresh = (
        {"Refresh": str(REFRESH_SECONDS)}
        if progress is not None and not error and shown is None
        else {}
    )
    return replace(answer, headers={**answer.headers, **refresh})


def progress_of(last: OperationRow | None, now: Instant) -> ProgressItem | None:
    if last is None or last.state != "running":
        return None
    log = None if last.progress is None else msgspec.json.decode(last.progress, type=ApplyLog)
    return ProgressItem(
        operation=str(last.uid),
        done=last.done,
        total=last.total,
        stopping=last.stopping or "",
        state=_state(last, log, now),
        left=_left(log),
        log="\n".join(
            f"{clock(one.at)}  {action_words(one.action):<8} {one.kind:<8} {one.uid}"
            for one in (log.steps if log else ())
        ),
    )


def _state(last: OperationRow, log: ApplyLog | None, now: Instant) -> str:
    """Returns what the application does, for how long, and its rate if it was measured."""
    elapsed = duration(now - last.created_at)
    if log is None:
        return f"Waits for a process, or compares the bundle with the project, since {elapsed}."
    if log.done >= log.total:
        return f"All objects are written. The changes are being committed. Runs for {elapsed}."
    rate = log.rate()
    said = f", {rate:.1f} objects per second" if rate else ""
    return f"Runs for {elapsed}{said}."


def _left(log: ApplyLog | None) -> str:
    left_us = None if log is None else log.us_left()
    return "" if left_us is None else f"about {duration(max(left_us, SECOND))} left"


def _failure(
    last: OperationRow | None, revisions: Sequence[RevisionRow], now: Instant
) -> tuple[Moment, str] | None:
    """Returns time and reason of the last application in the background, if it failed.

    A later application makes the failure obsolete.
    """
    if last is None or last.state != "failed" or last.finished_at is None:
        return None
    if revisions and revisions[0].applied_at > last.finished_at:
        return None
    return moment(last.finished_at, now), last.error or "no reason is stored"


def _bundle(row: BundleRow) -> tuple[str, str]:
    """Returns the name of a bundle, and the objects that it manages."""
    objects = [count(row.monitors, "monitor")] if row.monitors else []
    objects += [count(row.services, "service")] if row.services else []
    objects += [count(row.oncall, "on-call object")] if row.oncall else []
    objects += [count(row.others, "other object")] if row.others else []
    return name_of(row.path), ", ".join(objects)


def _revision(row: RevisionRow, now: Instant, project: UUID | None) -> RevisionItem:
    counts = ChangeCounts(row.created, row.updated, row.orphaned, row.unchanged, row.taken_over)
    summary = summary_of(counts, is_applied=True)
    by = row.actor_label or "unknown"
    name, path = name_of(row.path), ""
    if project is not None and row.has_changes:
        query = urlencode({"name": name, "revision": row.revision})
        path = f"/projects/{project}/bundle?{query}#plan-title"
    return RevisionItem(name, row.revision, moment(row.applied_at, now), by, summary, path)


def _summary(document: dict[str, Any]) -> str:
    said = count(len(document["monitors"]), "monitor")
    services = document.get("services")
    also = [count(len(services), "service")] if services else []
    sections = ("people", "channels", "schedules", "escalation_policies")
    oncall = sum(len(document.get(name, {})) for name in sections) + ("routes" in document)
    also += [count(oncall, "on-call object")] if oncall else []
    rest = ("maintenance", "status_pages", "webhooks")
    others = sum(len(document.get(name, {})) for name in rest)
    others += "project_settings" in document
    also += [count(others, "other object")] if others else []
    return " and ".join([", ".join([said, *also[:-1]]), *also[-1:]])


def _file(row: FileRow, now: Instant) -> BundleFileItem:
    applied = None if row.applied_at is None else moment(row.applied_at, now)
    return BundleFileItem(row.provider, row.path, row.status, row.last_error, applied)


_PATH: Final = "/projects/{projectID}/bundle"
_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=EXPORT,
        scope=_PROJECT,
        handler=render_bundle,
        summary="Bundle of a project.",
        query=BundleScreenQuery,
    ),
    Route(
        method="POST",
        path=_PATH,
        action=APPLY,
        scope=_PROJECT,
        handler=submit_bundle,
        summary="Plan or apply a bundle.",
        form=True,
        form_largest=FORM_BYTES_MOST,
        answer_seconds=MANY_WRITES_SECONDS,
        takes_files=True,
        page=True,
        in_document=False,
    ),
)
