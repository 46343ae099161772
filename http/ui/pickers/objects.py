"""Type-ahead fields for objects, people and tags of a project: lists, and objects of typed names.

A field holds a name or a slug. Its list has the first names; `picker.js` replaces it while the user
types. Without scripts a user can type any name, so that the bound of the list excludes no object.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import AccessDecision, Need, Permission, Scope, may
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.services.queries.pickable_objects import (
    PEOPLE,
    TYPED,
    Pickable,
    PickableKind,
    select_chosen,
    select_named,
    select_pickable,
    select_pickable_tags,
)
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from ..form_routes import page_route
from ..form_values import uuid_or_none, value_of
from ..render import page
from .fields import ADD, DROP, PickerChoice, PickerField, PickerOption, dropped

SHOWN_MOST: Final = 20
TYPED_MOST: Final = 200
TAG: Final = "tag"
_WRITE: Final = Permission(Need.EDITOR)


class PickQuery(msgspec.Struct, frozen=True):
    """`without` is the id of an object that the list leaves out."""

    kind: Literal[
        "monitor",
        "service",
        "channel",
        "recipient",
        "person",
        "participant",
        "target",
        "assignee",
        "tag",
    ] = "monitor"
    q: str = ""
    without: UUID | None = None


@dataclass(frozen=True, slots=True)
class PickPlace:
    """Project of the objects. `path` is the address of its screens."""

    org: int
    project: int
    path: str
    # Object that its own fields do not offer.
    without: UUID | None = None

    def address(self, kind: str) -> str:
        own = f"&without={self.without}" if self.without else ""
        return f"{self.path}/pick?kind={kind}{own}"


async def options_of(
    tx: Tx, org: int, project: int, kind: PickableKind, q: str = "", without: UUID | None = None
) -> list[PickerOption]:
    """Returns the first options for a text, at most SHOWN_MOST."""
    found = await select_pickable(
        tx, org, project, kind, q.strip()[:TYPED_MOST], SHOWN_MOST, without
    )
    names = [one.name.lower() for one in found]
    texts = [_text_of(one, kind) for one in found]
    return [
        _option(one, kind, names.count(one.name.lower()) > 1, texts.count(text) > 1)
        for one, text in zip(found, texts, strict=True)
    ]


def _option(one: Pickable, kind: PickableKind, is_ambiguous: bool, is_alike: bool) -> PickerOption:
    text = _text_of(one, kind)
    if is_alike and one.slug is None:
        # Only the id tells it from another one of its name and type.
        return PickerOption(str(one.uid), text, str(one.uid), text)
    if is_ambiguous:
        return PickerOption(one.slug or text, one.name, str(one.uid), text)
    label = ", ".join(filter(None, (one.slug or one.type, one.note)))
    return PickerOption(one.name, label, str(one.uid), text)


def _text_of(one: Pickable, kind: PickableKind) -> str:
    return f"{one.name}, {one.type}" if kind in TYPED else one.name


def _choice(one: Pickable, kind: PickableKind) -> PickerChoice:
    text = _text_of(one, kind)
    return PickerChoice(str(one.uid), f"{text} ({one.note})" if one.note else text)


def spelled(one: Pickable | None, kind: PickableKind) -> tuple[str, str]:
    """Returns the text of an object in a field, and the hidden value that `resolved` reads."""
    if one is None:
        return "", ""
    text = _text_of(one, kind)
    return text, f"{one.uid} {text}"


async def resolved(
    tx: Tx, org: int, project: int, kind: PickableKind, text: str, was: str, field: str
) -> Pickable | None:
    """Returns the object that a text names, None for an empty text.

    `was` is the hidden value. An unchanged text means its object, whose name others may have. The
    id of an object names it too. A part of a name is enough only where nobody is paged: the
    submitted form takes effect, and the part may be of another person's name.

    Raises: Refused as `named`.
    """
    key, _, known = was.partition(" ")
    uid = uuid_or_none(key) if text == known else uuid_or_none(text)
    if uid is not None:
        found = (await select_chosen(tx, org, project, kind, [uid])).get(uid)
        if found is not None:
            return found
    return await named(tx, org, project, kind, text, field, is_whole=kind in PEOPLE)


async def tag_options(tx: Tx, org: int, project: int, q: str = "") -> list[PickerOption]:
    tags = await select_pickable_tags(tx, org, project, q.strip()[:TYPED_MOST], SHOWN_MOST)
    return [PickerOption(tag, "", tag, tag) for tag in tags]


async def named(
    tx: Tx,
    org: int,
    project: int,
    kind: PickableKind,
    text: str,
    field: str,
    without: UUID | None = None,
    *,
    is_whole: bool = False,
) -> Pickable | None:
    """Returns the object that a text names, None for an empty text. `is_whole`: a part of the name
    is refused.

    Raises: Refused invalid with `field`, if none or several have the name.
    """
    if not text:
        return None
    found = await select_named(tx, org, project, kind, text, without)
    if not found:
        found = await select_pickable(tx, org, project, kind, text, 2, without)
        if is_whole and len(found) == 1:
            nearest = _text_of(found[0], kind)
            raise Refused("invalid", field, f"names no {kind} of this project; type {nearest}")
    if len(found) == 1 or (found and found[0].slug == text.lower()):
        return found[0]
    if len({_text_of(one, kind) for one in found}) == 1 and found[0].slug is None:
        rule = f"matches several {kind}s of one name, type the id of one, such as {found[0].uid}"
        raise Refused("invalid", field, rule)
    if found and kind in TYPED:
        example = f"{found[0].name}, {found[0].type}"
        rule = f"matches several {kind}s, type name and type of one, such as {example}"
        raise Refused("invalid", field, rule)
    if found:
        raise Refused("invalid", field, f"matches several {kind}s, type the slug of one")
    raise Refused("invalid", field, f"names no {kind} of this project")


async def field_of(
    tx: Tx, place: PickPlace, kind: PickableKind, name: str, keys: Iterable[str], text: str
) -> PickerField:
    """Returns a field with the choices of `keys` that are objects of the project."""
    uids = list(dict.fromkeys(filter(None, map(uuid_or_none, keys))))
    known = await select_chosen(tx, place.org, place.project, kind, uids) if uids else {}
    options = await options_of(tx, place.org, place.project, kind, text, place.without)
    return PickerField(
        name=name,
        path=place.address(kind),
        chosen=[_choice(known[uid], kind) for uid in uids if uid in known],
        options=options,
        text=text,
    )


async def tag_field(
    tx: Tx, place: PickPlace, name: str, tags: Iterable[str], text: str
) -> PickerField:
    return PickerField(
        name=name,
        path=place.address(TAG),
        chosen=[PickerChoice(tag, tag) for tag in tags_in(tags)],
        options=await tag_options(tx, place.org, place.project, text),
        text=text,
        free=True,
    )


def tags_in(texts: Iterable[str]) -> list[str]:
    """Returns the tags of texts with commas, each once."""
    tags = (tag.strip() for text in texts for tag in text.split(","))
    return list(dict.fromkeys(tag for tag in tags if tag))


async def with_picks(
    ask: Request, place: PickPlace, fields: Mapping[str, PickableKind | None]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Returns the form after its picker buttons, and the faults of typed texts by field.

    A remove button removes its choice. An Add button adds the text of its field, and every other
    button the texts of all fields. `fields` without a kind are tags.
    """
    act = value_of(ask, "act")
    form, faults = dropped(ask.form, act, fields), dict[str, str]()
    if act.startswith(DROP):
        return form, faults
    wanted = [act.removeprefix(ADD)] if act.startswith(ADD) else list(fields)
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        for name in wanted:
            text = value_of(ask, f"{ADD}{name}").strip()
            if name not in fields or not text:
                continue
            try:
                keys = await _keys(tx, place, fields[name], text, name)
            except Refused as refused:
                faults[name] = refused.message
                continue
            form[name] = list(dict.fromkeys([*form.get(name, ()), *keys]))
            form[f"{ADD}{name}"] = [""]
    return form, faults


async def _keys(
    tx: Tx, place: PickPlace, kind: PickableKind | None, text: str, name: str
) -> list[str]:
    if kind is None:
        return tags_in([text])
    found = await named(tx, place.org, place.project, kind, text, name, place.without)
    assert found is not None, "the text is not empty"
    return [str(found.uid)]


async def render_options(ask: Request) -> Response:
    """Returns the options of a list as HTML."""
    query: PickQuery = ask.query
    org, project = org_of(ask), project_of(ask)
    kind = None if query.kind == TAG else PickableKind(query.kind)
    if kind in PEOPLE and may(ask.who, _WRITE, Scope(org, project)) is not AccessDecision.ALLOWED:
        raise Problem("forbidden")
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        if kind is None:
            found = await tag_options(tx, org, project, query.q)
        else:
            found = await options_of(tx, org, project, kind, query.q, query.without)
    return options_page(found)


def options_page(found: Sequence[PickerOption]) -> Response:
    return page("ui/pickers/options.html", options=found)


ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/pick",
        action=Permission(Need.VIEWER),
        scope=("project", "projectID"),
        handler=render_options,
        summary="Objects or tags for a type-ahead field.",
        query=PickQuery,
    ),
)
