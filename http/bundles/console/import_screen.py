"""Import screen: a file of another tool becomes a bundle, whose plan is shown with a report.

The file can contain passwords. It is never shown again, logged or stored; an error names the place
and not the text.
"""

from typing import Any, Final

from ....storage.accounts.queries.projects import select_organization, select_project
from ....storage.bundles.rules.bundle import BYTES_MOST as BUNDLE_BYTES_MOST
from ....storage.bundles.rules.bundle import SECTIONS
from ....storage.bundles.rules.bundle_owner import name_fault
from ....storage.bundles.rules.bundle_yaml import write_text
from ....storage.bundles.transactions.apply_bundle import APPLY
from ....storage.core.instant import Instant
from ...importers import CannotImport, ImportResult
from ...importers.on_call import TOOLS as ON_CALL_TOOLS
from ...importers.on_call.bundle import contact_lines, on_call_bundle
from ...importers.on_call.document import OnCallImport
from ...importers.on_call.uploaded_export import read_on_call_upload
from ...importers.uploaded_file import (
    BYTES_MOST,
    MODULES_BYTES_MOST,
    read_upload,
)
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, value_of
from ...ui.render import page
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import MANY_WRITES_SECONDS, Request, Response, Route
from ..routes.bundles import aside
from .bundle_screen import ImportNote, ImportReport, render_import

# Both files, and the names and boundaries of the form.
FORM_BYTES_MOST: Final = BYTES_MOST + MODULES_BYTES_MOST + (1 << 16)
# Lines of the report that are shown; the command line prints all.
LINES_MOST: Final = 300
TOOLS: Final = {
    "kuma": ("Uptime Kuma", "Backup (JSON) of version 1, or kuma.db of version 2"),
    "gatus": ("Gatus", "config.yaml"),
    "healthchecks": ("Healthchecks", "Answer (JSON) of GET /api/v3/checks/"),
    "blackbox": ("Prometheus blackbox exporter", "prometheus.yml, or a file of targets"),
    "pagerduty": ("PagerDuty", "On-call: answers of the API (JSON)"),
    "opsgenie": ("Opsgenie", "On-call: answers of the API (JSON)"),
    "grafana-oncall": ("Grafana OnCall", "On-call: answers of the API (JSON)"),
    "goalert": ("GoAlert", "On-call: answers of the API (JSON)"),
}


async def render_upload(ask: Request) -> Response:
    return await _render(ask, "kuma", "")


async def submit_import(ask: Request) -> Response:
    kind, name = value_of(ask, "tool"), stripped(ask, "name")
    if kind not in TOOLS:
        raise Problem(f"tool: must be one of {', '.join(TOOLS)}")
    fault = name_fault(name or kind)
    if fault is not None:
        return await _render(ask, kind, name, error=f"Name: {fault}.", field="name")
    # A browser sends CRLF line breaks.
    pasted = value_of(ask, "text").replace("\r\n", "\n").encode()
    file = ask.files.get("file", b"") or pasted
    if not file.strip():
        error = "File: choose a file, or paste its text."
        return await _render(ask, kind, name, error=error, field="file")
    modules = ask.files.get("modules", b"") if kind == "blackbox" else b""
    try:
        organization, project, now = await _home(ask)
        if kind in ON_CALL_TOOLS:
            of_on_call = await aside(ask, lambda: read_on_call_upload(kind, file))
            document = on_call_bundle(of_on_call, organization, project, now)
            report = report_of_on_call(kind, of_on_call)
        else:
            found = await aside(ask, lambda: read_upload(kind, file, modules))
            document = {
                "format": 1,
                "organization": organization,
                "project": project,
                "monitors": found.monitors,
            }
            report = report_of(kind, found)
        text = await aside(ask, lambda: _bundle_text(document))
    except CannotImport as why:
        return await _render(ask, kind, name, error=f"File: {why}.", field="file")
    return await render_import(ask, text, name or kind, report)


async def _home(ask: Request) -> tuple[str, str, Instant]:
    """Returns the slugs of the organization and the project of the request, and the time."""
    async with ask.context.pool.transaction("import_home", read_only=True) as tx:
        home = await select_project(tx, ask.ids["projectID"])
        if home is None:
            raise Problem("not_found")
        organization, now = await select_organization(tx, home.org_uid), tx.now
    assert organization is not None, "the organization contains the project"
    return organization.slug, home.slug, now


def _bundle_text(document: dict[str, Any]) -> str:
    if not any(document.get(section) for section in SECTIONS):
        raise CannotImport("contains nothing that can be imported")
    text = write_text(document)
    if len(text.encode()) > BUNDLE_BYTES_MOST:
        rule = f"becomes a bundle of more than {BUNDLE_BYTES_MOST} bytes: divide it"
        raise CannotImport(rule)
    return text


def report_of(kind: str, found: ImportResult) -> ImportReport:
    """Returns the lines that the command line prints, at most LINES_MOST of each part."""
    parts = ([n for n in found.notes if not n.is_kept], [n for n in found.notes if n.is_kept])
    skipped, changed = (
        [ImportNote(note.name, note.lost) for note in notes[:LINES_MOST]] for notes in parts
    )
    lists = (*parts, found.unused, found.general)
    return ImportReport(
        tool=TOOLS[kind][0],
        imported=len(found.monitors),
        left_out=len(parts[0]),
        skipped=skipped,
        changed=changed,
        unused=found.unused[:LINES_MOST],
        general=found.general[:LINES_MOST],
        further=sum(max(len(one) - LINES_MOST, 0) for one in lists),
    )


def report_of_on_call(kind: str, found: OnCallImport) -> ImportReport:
    """Returns the lines as `report_of`. A lost part is named by the text before its reason."""
    lost = [text.partition(": ") for text in found.lost]
    general = contact_lines(found)
    return ImportReport(
        tool=TOOLS[kind][0],
        imported=len(found.schedules) + len(found.policies),
        left_out=len(lost),
        skipped=[ImportNote(name, (reason,)) for name, _, reason in lost[:LINES_MOST]],
        changed=[],
        unused=found.unused[:LINES_MOST],
        general=general[:LINES_MOST],
        further=sum(max(len(one) - LINES_MOST, 0) for one in (lost, found.unused, general)),
    )


async def _render(
    ask: Request, kind: str, name: str, *, error: str = "", field: str = ""
) -> Response:
    async with ask.context.pool.transaction("console_import", read_only=True) as tx:
        frame = await frame_of(ask, tx)
    return page(
        "bundles/console/import_screen.html",
        status=400 if error else 200,
        frame=frame,
        tools=TOOLS,
        kind=kind,
        name=name,
        error=error,
        field=field,
        most=BYTES_MOST >> 20,
    )


_PATH: Final = "/projects/{projectID}/import"
_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=APPLY,
        scope=_PROJECT,
        handler=render_upload,
        summary="Import of a file of another tool.",
    ),
    Route(
        method="POST",
        path=_PATH,
        action=APPLY,
        scope=_PROJECT,
        handler=submit_import,
        summary="Convert a file of another tool and plan its bundle.",
        form=True,
        form_largest=FORM_BYTES_MOST,
        answer_seconds=MANY_WRITES_SECONDS,
        takes_files=True,
        page=True,
        in_document=False,
    ),
)
