"""Shell of every screen for signed-in users: navigation, settings list, user menu.

A screen of a project has that project in its shell. The other screens (profile, settings of the
organization and of the installation, errors) have the project that the browser opened last.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from ....storage.accounts.queries.console_navigation import (
    PLACES_MOST,
    NavProject,
    SwitchProject,
    select_place,
    select_places,
)
from ....storage.accounts.rules.access import Principal, Rank, Scope, rank_in
from ....storage.core.instant import Instant, to_text
from ....storage.engine.pools import Tx
from ....storage.notifications.queries.global_silence import global_silence_in_force
from ....storage.notifications.rules.global_silence import GlobalSilence
from ...wire.errors import Problem
from ...wire.local_credentials import cookie_of
from ...wire.route import Request
from ...wire.scope_keys import org_of, project_of
from ..formatting import clock, dated
from ..shown_time import zone_word
from .preferences import PLACE_COOKIE, Theme, place_cookie, theme_of
from .settings_list import (
    SettingsGroup,
    installation_group,
    organization_group,
    project_group,
)

ROLES: Final = {
    Rank.VIEWER: "Viewer",
    Rank.EDITOR: "Editor",
    Rank.PROJECT_ADMIN: "Project admin",
    Rank.ORG_ADMIN: "Organization admin",
}
# (name, label, path below the project, shortcut after g, on the phone's bar, gap above)
_ENTRIES: Final = (
    ("overview", "Overview", "", "o", True, False),
    ("monitors", "Monitors", "/monitors", "m", True, False),
    ("services", "Services", "/services", "s", False, False),
    ("incidents", "Incidents", "/incidents", "i", True, False),
    ("on-call", "On-call", "/on-call", "c", True, False),
    ("changes", "Changes & gate", "/changes", "", False, True),
    ("maintenance", "Maintenance", "/maintenance", "", False, False),
    ("status-pages", "Status pages", "/status-pages", "", False, False),
)


@dataclass(frozen=True, slots=True)
class NavEntry:
    name: str
    label: str
    path: str
    key: str = ""
    on_phone: bool = False
    has_gap: bool = False
    count: int = 0
    # The count is one of open problems.
    is_problem: bool = False

    @property
    def classes(self) -> str:
        return " ".join(("k",) * self.on_phone + ("gap",) * self.has_gap)


@dataclass(frozen=True, slots=True)
class MuteBanner:
    """Banner of the global mute. `by` and `reason` are empty if they are not stored."""

    text: str
    by: str
    reason: str


@dataclass(frozen=True)
class PageShell:
    """Shell of a screen. `found` is None for a user without any project."""

    found: NavProject | None
    # The projects that the user can open, including the current one, at most PLACES_MOST.
    others: list[SwitchProject]
    person: str
    # Role in the project, empty without a project.
    role: str
    rank: Rank
    at: str
    at_iso: str
    # Path of this screen, to return to after a change of a preference.
    here: str
    theme: Theme
    # The user may administer the organization of the project.
    runs_organization: bool = False
    # The user is a global admin.
    runs_all: bool = False
    # None if alerts are not muted.
    silence: MuteBanner | None = None
    q: str = ""
    # A bundle or a file provider manages the object of the screen. Users cannot edit it here.
    is_read_only: bool = False
    # Set-Cookie that makes the browser open this project next time; empty if it already does.
    remember: str = ""

    @property
    def may_write(self) -> bool:
        return self.rank >= Rank.EDITOR and not self.is_read_only

    @property
    def may_export(self) -> bool:
        return self.rank >= Rank.EDITOR

    @property
    def home(self) -> str:
        return f"/projects/{self.found.uid}" if self.found else "/"

    @property
    def has_more(self) -> bool:
        """Returns whether the user can open more projects than the switcher lists."""
        return len(self.others) == PLACES_MOST

    @property
    def settings_path(self) -> str:
        return f"{self.home}/settings" if self.found else "/profile"

    @property
    def place_initials(self) -> str:
        return initials(self.found.organization) if self.found else ""

    @property
    def person_initials(self) -> str:
        return initials(self.person)

    @cached_property
    def entries(self) -> list[NavEntry]:
        """Returns the entries of the rail, at most nine."""
        place = self.found
        if place is None:
            return []
        counts = {
            "monitors": place.monitors,
            "services": place.services,
            "incidents": place.incidents,
        }
        made = [
            NavEntry(
                name,
                label,
                self.home + path,
                key,
                on_phone,
                gap,
                counts.get(name, 0),
                is_problem=name == "incidents",
            )
            for name, label, path, key, on_phone, gap in _ENTRIES
        ]
        return [*made, NavEntry("settings", "Settings", self.settings_path, has_gap=True)]

    @cached_property
    def settings(self) -> list[SettingsGroup]:
        groups: list[SettingsGroup] = []
        if self.found is not None:
            groups.append(project_group(self.found.uid, self.found.project, self.rank))
            if self.runs_organization:
                groups.append(
                    organization_group(self.found.organization_uid, self.found.organization)
                )
        if self.runs_all:
            groups.append(installation_group())
        return groups


@dataclass(frozen=True)
class PageLayout(PageShell):
    """Shell of a screen of a project."""

    @property
    def place(self) -> NavProject:
        assert self.found is not None, "the screen belongs to a project"
        return self.found


@dataclass(frozen=True)
class OuterLayout(PageShell):
    """Shell of a screen that belongs to no project."""

    @property
    def place(self) -> NavProject | None:
        return self.found


async def frame_of(ask: Request, tx: Tx, *, q: str = "") -> PageLayout:
    """Returns the shell of a screen within a project."""
    place = await select_place(tx, org_of(ask), project_of(ask))
    if place is None:
        raise Problem("not_found")
    places = await select_places(tx, ask.who)
    shell = await _shell(tx, ask.who, ask.headers, ask.path, places, place)
    known = _remembered(ask.headers) == str(place.uid)
    remember = "" if known else place_cookie(place.uid, ask.context.options)
    return PageLayout(**shell, q=q, remember=remember)


async def outer_frame_of(ask: Request, *, organization: UUID | None = None) -> OuterLayout:
    """Returns the shell of a screen outside projects, read in its own transaction.

    Its project is the last opened one. If `organization` is given, a project of it is preferred.
    """
    async with ask.context.pool.transaction("console_shell", read_only=True) as tx:
        return await outer_frame(tx, ask.who, ask.headers, ask.path, organization=organization)


async def outer_frame(
    tx: Tx,
    who: Principal,
    headers: Mapping[str, str],
    path: str,
    *,
    organization: UUID | None = None,
) -> OuterLayout:
    # Without its second factor, an account opens its profile only, and no project.
    places = [] if who.owes_second_factor else await select_places(tx, who)
    near = [one for one in places if organization in (None, one.organization_uid)] or places
    remembered = _remembered(headers)
    chosen = next((one for one in near if str(one.uid) == remembered), near[0] if near else None)
    place = None if chosen is None else await select_place(tx, chosen.org, chosen.id)
    return OuterLayout(**await _shell(tx, who, headers, path, places, place))


def _remembered(headers: Mapping[str, str]) -> str:
    return cookie_of(headers.get("cookie", ""), PLACE_COOKIE)


async def _shell(
    tx: Tx,
    who: Principal,
    headers: Mapping[str, str],
    path: str,
    places: list[SwitchProject],
    place: NavProject | None,
) -> dict[str, Any]:
    rank = Rank.NONE if place is None else rank_in(who, Scope(place.org, place.id))
    return {
        "found": place,
        "others": places,
        "person": who.label,
        "role": ROLES.get(rank, ""),
        "rank": rank,
        "at": clock(tx.now),
        "at_iso": to_text(Instant(tx.now)),
        "here": path or "/",
        "theme": theme_of(headers),
        "runs_organization": place is not None and rank_in(who, Scope(place.org)) >= Rank.ORG_ADMIN,
        "runs_all": who.is_everywhere_org_admin,
        "silence": _banner(await global_silence_in_force(tx), tx.now),
    }


def initials(name: str) -> str:
    """Returns at most two letters that stand for a name."""
    words = [word for word in name.replace("@", " ").replace(".", " ").split() if word[0].isalnum()]
    return "".join(word[0] for word in words[:2]).upper()


def _banner(silence: GlobalSilence | None, now: Instant) -> MuteBanner | None:
    if silence is None:
        return None
    until = "unmuted" if silence.until is None else f"{dated(silence.until, now)} {zone_word()}"
    since = "" if silence.set_at is None else f", since {dated(silence.set_at, now)} {zone_word()}"
    return MuteBanner(f"All alerts are muted until {until}{since}", silence.by, silence.reason)
