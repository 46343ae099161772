"""Frame of every project screen: navigation, user and available screens."""

from dataclasses import dataclass

from ...storage.accounts.queries.console_navigation import NavProject, select_place, select_places
from ...storage.accounts.rules.access import Rank, Scope, rank_in
from ...storage.core.instant import Instant, to_text
from ...storage.engine.pools import Tx
from ...storage.notifications.queries.global_silence import global_silence_in_force
from ...storage.notifications.rules.global_silence import GlobalSilence
from ..wire.errors import Problem
from ..wire.route import Request
from .formatting import clock, dated

_ROLES = {
    Rank.VIEWER: "Viewer",
    Rank.EDITOR: "Editor",
    Rank.PROJECT_ADMIN: "Project admin",
    Rank.ORG_ADMIN: "Organization admin",
}


@dataclass(frozen=True, slots=True)
class PageLayout:
    place: NavProject
    # Other projects that the user can open.
    others: list[NavProject]
    person: str
    role: str
    may_write: bool
    # The user may export the project's bundle.
    may_export: bool
    # The user may administer members and tokens of the organization.
    runs_organization: bool
    at: str
    at_iso: str
    q: str = ""
    # The user is a global admin.
    runs_all: bool = False
    # Reason why all alerts are muted, empty if they are not.
    silence: str = ""


async def frame_of(ask: Request, tx: Tx, *, q: str = "") -> PageLayout:
    """Returns the frame of a screen within a project."""
    assert ask.scope is not None
    org, project = int(str(ask.scope.organization)), int(str(ask.scope.project))
    place = await select_place(tx, org, project)
    if place is None:
        raise Problem("not_found")
    others = [other for other in await select_places(tx, ask.who) if other.uid != place.uid]
    rank = rank_in(ask.who, ask.scope)
    return PageLayout(
        place,
        others,
        ask.who.label,
        _ROLES.get(rank, ""),
        may_write=rank >= Rank.EDITOR,
        may_export=rank >= Rank.EDITOR,
        runs_organization=rank_in(ask.who, Scope(org)) >= Rank.ORG_ADMIN,
        at=clock(tx.now),
        at_iso=to_text(Instant(tx.now)),
        q=q,
        runs_all=ask.who.is_everywhere_org_admin,
        silence=_title_text(await global_silence_in_force(tx), tx.now),
    )


def _title_text(silence: GlobalSilence | None, now: Instant) -> str:
    if silence is None:
        return ""
    until = "unmuted" if silence.until is None else f"{dated(silence.until, now)} UTC"
    return f"All alerts are muted until {until}."
