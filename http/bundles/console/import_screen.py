"""Import screen: a file of another tool becomes a bundle, whose plan is shown with a report.

The file can contain passwords. It is never shown again, logged or stored; an error names the place
and not the text.
"""

from typing import Final

from ....storage.accounts.queries.projects import select_organization, select_project
from ....storage.bundles.rules.bundle import BYTES_MOST as BUNDLE_BYTES_MOST
from ....storage.bundles.rules.bundle_owner import name_fault
from ....storage.bundles.rules.bundle_yaml import write_text
from ....storage.bundles.transactions.apply_bundle import APPLY
from ...importers import CannotImport, ImportResult
from ...importers.uploaded_file import BYTES_MOST, MODULES_BYTES_MOST, read_upload
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
        found = await aside(ask, lambda: read_upload(kind, file, modules))
        head = await _head(ask)
        text = await aside(ask, lambda: _bundle_text(head, found))
    except CannotImport as why:
        return await _render(ask, kind, name, error=f"File: {why}.", field="file")
    return await render_import(ask, text, name or kind, report_of(kind, found))


async def _head(ask: Request) -> dict[str, object]:
    """Returns the start of a bundle for the project of the request."""
    async with ask.context.pool.transaction("import_home", read_only=True) as tx:
        home = await select_project(tx, ask.ids["projectID"])
        if home is None:
            raise Problem("not_found")
        organization = await select_organization(tx, home.org_uid)
    assert organization is not None, "the organization contains the project"
    return {"format": 1, "organization": organization.slug, "project": home.slug}


def _bundle_text(head: dict[str, object], found: ImportResult) -> str:
    if not found.monitors:
        raise CannotImport("contains nothing that can be imported")
    text = write_text({**head, "monitors": found.monitors})
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
