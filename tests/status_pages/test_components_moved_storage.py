"""A component moves by any number of places and stops at the ends of the page."""

import pytest

from leadline.storage.status_pages.rules.status_page_edit import ComponentDraft
from leadline.storage.status_pages.transactions.edit_components import (
    create_component,
    move_component,
)
from tests.status_pages.test_pages_contended_storage import BY_HAND, admin, new_page
from tests.support.worlds.world import World


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
