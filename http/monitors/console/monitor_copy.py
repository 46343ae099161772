"""Screen with a monitor as a curl command and as an entry of a bundle, to copy either."""

import shlex
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from ....storage.bundles.rules.bundle import FORMATS
from ....storage.bundles.rules.bundle_yaml import write_text
from ....storage.bundles.transactions.export_bundle import EXPORT, export_bundle
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.console_monitors import select_shown_monitor
from ....storage.monitors.queries.monitors import select_monitor
from ....storage.monitors.rows import MonitorRow
from ....storage.regional.queries import select_members
from ....storage.regional.rules import OF_BOTH, OF_COMPOSITE
from ...ui.form_routes import page_route
from ...ui.render import page
from ...ui.shell.page_layout import frame_of
from ...wire.route import Request, Response
from ..routes import monitors as api
from ..schemas.monitors import CreateMonitor

_OF_WHOLE: Final = OF_BOTH | OF_COMPOSITE | {"regions", "down_regions"}
TOKEN: Final = "$LEADLINE_TOKEN"


class CopyQuery(msgspec.Struct, frozen=True):
    show: Literal["curl", "yaml"] = "curl"


async def render_copy(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_copy", read_only=True) as tx:
        row = await select_shown_monitor(tx, ask.ids["monitorID"])
        if row is None:
            raise Refused("not_found")
        frame = await frame_of(ask, tx)
        bundle = await export_bundle(tx, ask.who, row.project_uid, ask.context.keyring)
        monitor = await select_monitor(tx, row.uid)
        assert monitor is not None, "the same snapshot shows it"
        members = await select_members(tx, monitor)
        body = await create_body(ask, tx, monitor, members)
    base = ask.base_url
    entries = bundle["monitors"].items()
    slugs = {row.slug, *(member.slug for member in members)}
    mine = {key: one for key, one in entries if one.get("slug", key) in slugs}
    # An object of a file provider is not exported.
    document = {
        # Earlier formats have no objectives, channels or regions of a monitor.
        "format": FORMATS[-1],
        "organization": bundle["organization"],
        "project": bundle["project"],
        "monitors": mine,
    }
    text = write_text(document) if mine else ""
    return page(
        "ui/copy_screen.html",
        frame=frame,
        row=row,
        kind="monitor",
        needs_jq=False,
        curl_note="",
        yaml_note="",
        show=ask.query.show,
        curl=curl(
            shlex.quote(f"{base}/api/v1/projects/{row.project_uid}/monitors"),
            body,
        ),
        yaml=text,
    )


async def create_body(
    ask: Request, tx: Tx, monitor: MonitorRow, members: Sequence[MonitorRow]
) -> dict[str, Any]:
    """Returns the body that creates the same monitor, without secrets and default values.

    That of a regional monitor has the check of its first member, which all members share.
    """
    whole, *first = msgspec.to_builtins(await api.monitors_json(ask, tx, [monitor, *members[:1]]))
    shown = whole
    for member in first:
        of_whole = {name: whole.get(name) for name in _OF_WHOLE}
        shown = {name: value for name, value in (member | of_whole).items() if value is not None}
        # The regions of all members replace that of one.
        del shown["region"]
    wanted = {item.name: item for item in msgspec.structs.fields(CreateMonitor)}
    return {
        name: shown[name]
        for name, item in wanted.items()
        if name in shown and name != "slug" and shown[name] not in (item.default, [], {})
    }


def curl(url: str, body: dict[str, Any], *, method: str = "POST") -> str:
    """Returns a command with a JSON body. The token is a variable of the shell.

    `url` is a word of the shell: quoted, or with a variable.
    """
    document = msgspec.json.format(msgspec.json.encode(body), indent=2).decode()
    return (
        f"curl -fsS -X {method} {url} \\\n"
        f'  -H "Authorization: Bearer {TOKEN}" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(document)}"
    )


ROUTES: Final = (
    page_route(
        method="GET",
        path="/monitors/{monitorID}/copy",
        action=EXPORT,
        scope=("monitor", "monitorID"),
        handler=render_copy,
        summary="A monitor as a curl command and as YAML of a bundle.",
        query=CopyQuery,
    ),
)
