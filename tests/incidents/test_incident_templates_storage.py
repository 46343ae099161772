"""Writers of templates take turns: names stay unique, and a deleted project gets no template."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
import trio

from leadline.storage.accounts.tables.tenant_deletion import lock_project
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.incidents.rules.incident_template import TemplateDraft
from leadline.storage.incidents.transactions import edit_incident_templates
from leadline.storage.incidents.transactions.edit_incident_templates import (
    TemplateEdit,
    create_template,
    delete_template,
    edit_template,
)
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.world import World


async def made(world: World, name: str) -> UUID:
    async with world.pool.transaction("make") as tx:
        draft = TemplateDraft(name, "It fails")
        return (await create_template(tx, world.editor, world.project_uid, draft)).uid


async def names(world: World) -> list[str]:
    return [name for (name,) in await world.rows("select name from incident_templates order by 1")]


async def second_of(
    world: World,
    first: Callable[[Tx], Awaitable[object]],
    second: Callable[[Tx], Awaitable[object]],
) -> str:
    """Returns the refusal of the second writer, which waits for the first; empty without one."""
    refused = [""]

    async def later() -> None:
        try:
            async with world.pool.transaction("second") as tx:
                await second(tx)
        except Refused as error:
            refused[0] = error.code

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            async with world.pool.transaction("first") as tx:
                await first(tx)
                nursery.start_soon(later)
                await until_blocked(world.pool)
    return refused[0]


def creates(world: World, name: str) -> Callable[[Tx], Awaitable[object]]:
    async def write(tx: Tx) -> None:
        await create_template(tx, world.editor, world.project_uid, TemplateDraft(name, "It fails"))

    return write


def edits(world: World, uid: UUID, edit: TemplateEdit) -> Callable[[Tx], Awaitable[object]]:
    async def write(tx: Tx) -> None:
        await edit_template(tx, world.editor, uid, edit)

    return write


def deletes(world: World, uid: UUID) -> Callable[[Tx], Awaitable[object]]:
    async def write(tx: Tx) -> None:
        await delete_template(tx, world.editor, uid)

    return write


async def test_of_two_equal_names_at_once_one_is_refused(world: World) -> None:
    assert await second_of(world, creates(world, "A"), creates(world, "a")) == "template_exists"
    uid = await made(world, "B")
    renames = edits(world, uid, TemplateEdit(name="c"))
    assert await second_of(world, renames, creates(world, "C")) == "template_exists"
    assert await second_of(
        world, creates(world, "D"), edits(world, uid, TemplateEdit(name="d"))
    ) == ("template_exists")
    assert await names(world) == ["A", "D", "c"]


async def test_two_writers_at_once_do_not_exceed_the_bound(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_incident_templates, "TEMPLATES_OF_PROJECT_MOST", 1)
    assert await second_of(world, creates(world, "A"), creates(world, "B")) == "template_quota"
    assert await names(world) == ["A"]


async def test_two_edits_at_once_keep_the_fields_of_both(world: World) -> None:
    uid = await made(world, "A")
    first, second = TemplateEdit(title="New title"), TemplateEdit(body="New body")
    assert await second_of(world, edits(world, uid, first), edits(world, uid, second)) == ""
    found = await world.rows("select name, title, body from incident_templates")
    assert found == [("A", "New title", "New body")]


async def test_an_edit_of_a_template_that_is_being_deleted_finds_none(world: World) -> None:
    uid = await made(world, "A")
    writes = edits(world, uid, TemplateEdit(name="B"))
    assert await second_of(world, deletes(world, uid), writes) == "not_found"
    uid = await made(world, "A")
    assert await second_of(world, deletes(world, uid), deletes(world, uid)) == "not_found"
    assert await names(world) == []


async def test_the_deletion_of_a_project_deletes_its_templates(world: World) -> None:
    uid = await made(world, "A")

    async def deletes_project(tx: Tx) -> None:
        assert await lock_project(tx, world.org, world.project)
        await tx.execute("delete from projects where org = %(o)s", o=world.org)

    writes = edits(world, uid, TemplateEdit(name="B"))
    assert await second_of(world, deletes_project, writes) == "not_found"
    assert await names(world) == []
