"""Two concurrent writes of related rows of status pages: the second waits for the first and then
sees its result. Deleting a page deletes the components that were added concurrently, a source that
is being bound cannot be deleted before that, and of two conversions of the same generation one is
refused.
"""

from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.accounts.tables import projects
from leadline.storage.core.instant import HOUR, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from leadline.storage.retirement.transactions.delete_service import delete_service
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from leadline.storage.status_pages.queries.status_pages import select_status_page
from leadline.storage.status_pages.rows import ComponentRow, PageRow
from leadline.storage.status_pages.rules.status_page import (
    ComponentSource,
    ComponentStatus,
    Visibility,
)
from leadline.storage.status_pages.rules.status_page_edit import (
    BindingTarget,
    ComponentDraft,
    ComponentEdit,
    PageDraft,
)
from leadline.storage.status_pages.transactions import edit_components, edit_pages
from leadline.storage.status_pages.transactions.convert_component import (
    ConversionBase,
    convert_component,
)
from leadline.storage.status_pages.transactions.edit_components import (
    create_component,
    delete_component,
    move_component,
    update_component,
)
from leadline.storage.status_pages.transactions.edit_pages import (
    create_page,
    delete_page,
    find_page,
    lock_page,
    update_page,
)
from leadline.storage.status_pages.transactions.lock_bindings import lock_bindings
from tests.monitors.test_secrets_while_monitors_are_saved_storage import WRITE_SECONDS, both
from tests.support.worlds.blocked import until_blocked
from tests.support.worlds.deletion import delete_organization, delete_project
from tests.support.worlds.world import START, World

Write = Callable[[World, Tx], Awaitable[object]]
BY_HAND = BindingTarget(manual_status=ComponentStatus.OPERATIONAL)
SEEN = ConversionBase(revision=1, generation=2)


def admin(world: World, org: int | None = None) -> Principal:
    member = Membership(org or world.org, None, Role.ORG_ADMIN)
    return Principal(CredentialKind.SESSION, (member,), user=uuid7(), label="admin")


async def org_uid(world: World, slug: str = "acme") -> UUID:
    ((uid,),) = await world.rows("select uid from organizations where slug = %(s)s", s=slug)
    return UUID(str(uid))


async def new_page(world: World, *, whole: bool = False, slug: str = "page") -> PageRow:
    project = None if whole else world.project_uid
    draft = PageDraft(slug=slug, title="Page", project=project)
    organization = await org_uid(world)
    async with world.pool.transaction("new_page") as tx:
        return await create_page(tx, admin(world), organization, draft, world.keyring)


async def new_component(
    world: World, page: PageRow, target: BindingTarget = BY_HAND
) -> ComponentRow:
    draft = ComponentDraft(name="first", target=target)
    async with world.pool.transaction("new_component") as tx:
        return await create_component(tx, admin(world), page.uid, draft)


async def new_service(world: World) -> UUID:
    async with world.pool.transaction("new_service") as tx:
        draft = ServiceDraft(name="service")
        return (await create_service(tx, world.editor, world.project_uid, draft)).uid


async def one(tx: Tx, table: str) -> UUID:
    found: UUID = await tx.value(f"select uid from {table} order by id")
    return found


async def components(world: World) -> list[tuple[object, ...]]:
    return await world.rows(
        "select name, source, monitor is null and service is null"
        " from status_components order by id"
    )


async def drop_page(world: World, tx: Tx) -> None:
    await delete_page(tx, admin(world), await one(tx, "status_pages"))


async def drop_project(world: World, tx: Tx) -> None:
    await delete_project(tx, admin(world), world.project_uid)


async def drop_monitor(world: World, tx: Tx) -> None:
    await delete_monitor(tx, world.editor, await one(tx, "monitors"))


async def drop_service(world: World, tx: Tx) -> None:
    await delete_service(tx, world.editor, world.project_uid, await one(tx, "services"))


async def add(world: World, tx: Tx, target: BindingTarget = BY_HAND) -> None:
    draft = ComponentDraft(name="second", target=target)
    await create_component(tx, admin(world), await one(tx, "status_pages"), draft)


async def add_monitor(world: World, tx: Tx) -> None:
    await add(world, tx, BindingTarget(monitor=await one(tx, "monitors")))


async def add_service(world: World, tx: Tx) -> None:
    await add(world, tx, BindingTarget(service=await one(tx, "services")))


async def retitle(world: World, tx: Tx) -> None:
    page = await one(tx, "status_pages")
    await update_page(tx, admin(world), page, "New", None, world.keyring)


async def rename(world: World, tx: Tx) -> None:
    component = await one(tx, "status_components")
    await update_component(tx, admin(world), component, ComponentEdit(name="renamed"))


async def take_away(world: World, tx: Tx) -> None:
    await delete_component(tx, admin(world), await one(tx, "status_components"))


async def convert(world: World, tx: Tx, source: ComponentSource, target: BindingTarget) -> None:
    component = await one(tx, "status_components")
    await convert_component(tx, admin(world), component, source, target, SEEN)


async def convert_by_hand(world: World, tx: Tx) -> None:
    await convert(
        world, tx, ComponentSource.MANUAL, BindingTarget(manual_status=ComponentStatus.DEGRADED)
    )


async def convert_to_monitor(world: World, tx: Tx) -> None:
    await convert(
        world, tx, ComponentSource.MONITOR, BindingTarget(monitor=await one(tx, "monitors"))
    )


async def convert_to_service(world: World, tx: Tx) -> None:
    await convert(
        world, tx, ComponentSource.SERVICE, BindingTarget(service=await one(tx, "services"))
    )


@pytest.mark.parametrize("drop", [drop_page, drop_project])
@pytest.mark.parametrize("edit", [add, retitle, rename, take_away, convert_by_hand])
@pytest.mark.parametrize("dropped_first", [True, False])
async def test_deleting_a_page_deletes_concurrently_added_components(
    world: World, drop: Write, edit: Write, dropped_first: bool
) -> None:
    await new_component(world, await new_page(world))
    if dropped_first:
        assert await both(world, drop, edit) == ["done", "not_found"]
    else:
        assert await both(world, edit, drop) == ["done", "done"]
    assert await components(world) == []
    assert await world.rows("select from status_pages") == []


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("drop", "bind", "source"),
    [
        (drop_monitor, add_monitor, "monitor"),
        (drop_monitor, convert_to_monitor, "monitor"),
        (drop_service, add_service, "service"),
        (drop_service, convert_to_service, "service"),
    ],
)
@pytest.mark.parametrize("dropped_first", [True, False])
async def test_a_source_is_bound_before_its_deletion_or_not_found(
    world: World, drop: Write, bind: Write, source: str, *, dropped_first: bool, whole: bool
) -> None:
    await new_component(world, await new_page(world, whole=whole))
    await world.monitor()
    await new_service(world)
    if dropped_first:
        assert await both(world, drop, bind) == ["done", "binding not found"]
        assert await components(world) == [("first", "manual", True)]
    else:
        assert await both(world, bind, drop) == ["done", "done"]
        assert (await components(world))[-1][1:] == (source, True)


async def test_a_monitor_is_deleted_while_its_component_is_converted(world: World) -> None:
    going, staying = await world.monitor(), await world.monitor()
    await new_component(world, await new_page(world), BindingTarget(monitor=going.uid))

    async def convert_away(world: World, tx: Tx) -> None:
        await convert(world, tx, ComponentSource.MONITOR, BindingTarget(monitor=staying.uid))

    async def drop(world: World, tx: Tx) -> None:
        await delete_monitor(tx, world.editor, going.uid)

    assert await both(world, drop, convert_away) == ["done", "done"]
    ((monitor,),) = await world.rows("select monitor from status_components")
    assert monitor == staying.id


async def test_a_monitor_is_deleted_after_its_component_was_converted(world: World) -> None:
    going, staying = await world.monitor(), await world.monitor()
    await new_component(world, await new_page(world), BindingTarget(monitor=going.uid))

    async def convert_away(world: World, tx: Tx) -> None:
        await convert(world, tx, ComponentSource.MONITOR, BindingTarget(monitor=staying.uid))

    async def drop(world: World, tx: Tx) -> None:
        await delete_monitor(tx, world.editor, going.uid)

    assert await both(world, convert_away, drop) == ["done", "done"]
    ((monitor,),) = await world.rows("select monitor from status_components")
    assert monitor == staying.id


@pytest.mark.parametrize("other", [retitle, rename, add, convert_to_monitor])
async def test_of_two_conversions_of_one_generation_one_is_refused(
    world: World, other: Write
) -> None:
    await new_component(world, await new_page(world))
    await world.monitor()
    told = await both(world, other, convert_by_hand)
    assert told == ["done", "page_configuration_stale"]


@pytest.mark.parametrize("other", [retitle, rename, take_away, add])
async def test_concurrent_edits_each_raise_the_generation(world: World, other: Write) -> None:
    page = await new_page(world)
    await new_component(world, page)
    assert await both(world, add, other if other is not add else add_again) == ["done", "done"]
    async with world.pool.transaction("look", read_only=True) as tx:
        row = await select_status_page(tx, page.uid)
    assert row is not None
    assert row.generation == 4


async def add_again(world: World, tx: Tx) -> None:
    await add(world, tx)


async def test_concurrent_additions_get_different_positions(world: World) -> None:
    await new_page(world)
    assert await both(world, add, add_again) == ["done", "done"]
    rows = await world.rows("select position from status_components order by id")
    assert rows == [(0,), (1,)]


async def test_concurrent_additions_do_not_exceed_the_component_quota(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_components, "COMPONENTS_MOST", 1)
    await new_page(world)
    assert await both(world, add, add_again) == ["done", "component_quota"]


async def make_page(world: World, tx: Tx) -> None:
    draft = PageDraft(slug="new", title="New", project=world.project_uid)
    await create_page(tx, admin(world), await one(tx, "organizations"), draft, world.keyring)


async def make_page_again(world: World, tx: Tx) -> None:
    await make_page(world, tx)


async def test_concurrent_creations_do_not_exceed_the_page_quota(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_pages, "PAGES_OF_ORGANIZATION_MOST", 1)
    assert await both(world, make_page, make_page_again) == ["done", "page_quota"]


async def test_a_page_is_not_created_in_a_deleted_project(world: World) -> None:
    assert await both(world, drop_project, make_page) == ["done", "invalid"]


async def test_deleting_a_project_deletes_a_page_created_concurrently(world: World) -> None:
    assert await both(world, make_page, drop_project) == ["done", "done"]
    assert await world.rows("select from status_pages") == []


async def test_a_component_is_bound_while_its_project_is_deleted(world: World) -> None:
    """The deletion of a project runs its triggers in the order of their names, which differs
    between databases. Here pages are deleted first, while the binding transaction has a lock on the
    service.
    """
    page, service = await new_page(world), await new_service(world)
    await pages_go_first(world)
    held, waited_for = trio.Event(), trio.Event()

    async def bind() -> None:
        async with world.pool.transaction("bind") as tx:
            found = await find_page(tx, admin(world), page.uid)
            await lock_bindings(tx, found, BindingTarget(service=service))
            held.set()
            await waited_for.wait()
            await lock_page(tx, found)

    async def drop_its_project() -> None:
        await held.wait()
        async with world.pool.transaction("drop_project") as tx:
            await drop_project(world, tx)

    with trio.fail_after(WRITE_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bind)
            nursery.start_soon(drop_its_project)
            await held.wait()
            await until_blocked(world.pool)
            waited_for.set()
    assert await world.rows("select from projects") == []


async def pages_go_first(world: World) -> None:
    async with world.pool.transaction("pages_go_first") as tx:
        name = await tx.value(
            "select t.tgname from pg_trigger t join pg_constraint c on c.oid = t.tgconstraint"
            " where t.tgrelid = 'projects'::regclass and c.conrelid = 'status_pages'::regclass"
            " and (t.tgtype & 8) = 8"
        )
        await tx.execute(f'alter trigger "{name}" on projects rename to "A_first"')


async def second_organization(world: World) -> int:
    async with world.pool.transaction("second") as tx:
        org = await projects.insert_organization(tx, uuid7(), "second", "Second")
    assert org is not None
    return org


async def test_concurrent_tenants_cannot_take_the_same_slug(world: World) -> None:
    org = await second_organization(world)

    async def make_elsewhere(world: World, tx: Tx) -> None:
        draft = PageDraft(slug="new", title="New")
        uid: UUID = await tx.value("select uid from organizations where id = %(org)s", org=org)
        await create_page(tx, admin(world, org), uid, draft, world.keyring)

    assert await both(world, make_page, make_elsewhere) == ["done", "slug_taken"]


@pytest.mark.parametrize("dropped_first", [True, False])
async def test_deleting_an_organization_deletes_its_pages(
    world: World, dropped_first: bool
) -> None:
    org = await second_organization(world)
    uid = await org_uid(world, "second")

    async def make(world: World, tx: Tx) -> None:
        draft = PageDraft(slug="new", title="New", visibility=Visibility.UNLISTED)
        await create_page(tx, admin(world, org), uid, draft, world.keyring)

    async def drop(world: World, tx: Tx) -> None:
        keeper = Principal(CredentialKind.SESSION, is_global_admin=True, label="keeper")
        await delete_organization(tx, keeper, uid)

    if dropped_first:
        assert await both(world, drop, make) == ["done", "not_found"]
    else:
        assert await both(world, make, drop) == ["done", "done"]
    assert await world.rows("select from status_pages") == []


async def test_each_edit_updates_the_timestamp_of_the_page(world: World) -> None:
    page = await new_page(world)
    component = await new_component(world, page)
    target = BindingTarget(manual_status=ComponentStatus.NO_DATA)
    for edit in (retitle, rename, convert_again, take_away):
        world.now = Instant(world.now + HOUR)
        async with world.pool.transaction("edit") as tx:
            await edit(world, tx)
        ((updated_at, created_at),) = await world.rows(
            "select updated_at, created_at from status_pages"
        )
        assert (updated_at, created_at) == (world.now, START)
    async with world.pool.transaction("late") as tx:
        with pytest.raises(Refused, match="not_found"):
            await convert_component(
                tx, admin(world), component.uid, ComponentSource.MANUAL, target, SEEN
            )


async def convert_again(world: World, tx: Tx) -> None:
    component = await one(tx, "status_components")
    seen = ConversionBase(revision=2, generation=4)
    target = BindingTarget(manual_status=ComponentStatus.DEGRADED)
    await convert_component(tx, admin(world), component, ComponentSource.MANUAL, target, seen)


@pytest.mark.parametrize(
    ("moved", "by", "order", "is_edit"),
    [
        ("a", 1, "bacd", True),
        ("a", 2, "bcad", True),
        ("c", -1, "acbd", True),
        ("d", -3, "dabc", True),
        ("b", 9, "acdb", True),
        ("a", -1, "abcd", False),
        ("d", 1, "abcd", False),
    ],
)
async def test_a_component_moves_by_a_number_of_places(
    world: World, moved: str, by: int, order: str, is_edit: bool
) -> None:
    page = await new_page(world)
    made = {}
    for name in "abcd":
        draft = ComponentDraft(name=name, target=BY_HAND)
        async with world.pool.transaction("new") as tx:
            made[name] = (await create_component(tx, admin(world), page.uid, draft)).uid
    generations = "select generation from status_pages"
    before = await world.rows(generations)
    async with world.pool.transaction("move") as tx:
        await move_component(tx, admin(world), made[moved], by)
    names = await world.rows("select name from status_components order by position, id")
    assert "".join(str(name) for (name,) in names) == order
    assert (await world.rows(generations) != before) is is_edit
