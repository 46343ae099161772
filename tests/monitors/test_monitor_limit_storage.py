"""The limit of monitors of a project, for creations and bundles, also at the same time."""

import pytest

from leadline.storage.bundles.transactions import write_monitors
from leadline.storage.bundles.transactions.apply_bundle import apply_bundle
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.rules.monitor import MonitorDraft
from leadline.storage.monitors.transactions import create_monitor
from tests.bundles.test_bundle_locks_storage import bundle, context
from tests.monitors.test_secrets_while_monitors_are_saved_storage import Write, both
from tests.support.worlds.world import REGIONS, World

MOST = 2
BUNDLE = bundle({"web": {"type": "http", "target": "https://example.org/"}}, {})


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (create_monitor, write_monitors):
        monkeypatch.setattr(module, "MONITORS_OF_PROJECT_MOST", MOST)


def creating(name: str, slug: str | None = None) -> Write:
    async def write(world: World, tx: Tx) -> None:
        draft = MonitorDraft(name=name, type="http", target="http://127.0.0.1/", slug=slug)
        where = (tx, world.editor, world.project_uid)
        await create_monitor.create_monitor(*where, draft, world.keyring, REGIONS)

    return write


async def apply(world: World, tx: Tx) -> None:
    await apply_bundle(tx, world.project_uid, BUNDLE, *context(world))


async def monitors_of(world: World) -> int:
    return len(await world.rows("select from monitors"))


@pytest.mark.parametrize("slug", [None, "chosen"])
async def test_a_full_project_gets_no_monitor(world: World, slug: str | None) -> None:
    for _ in range(MOST):
        await world.monitor()
    with pytest.raises(Refused) as refused:
        await world.monitor(slug=slug)
    assert (refused.value.code, refused.value.field) == ("invalid", "project")
    assert await monitors_of(world) == MOST


@pytest.mark.parametrize("slug", [None, "chosen"])
async def test_concurrent_creations_stay_within_the_limit(world: World, slug: str | None) -> None:
    await world.monitor()
    first, second = creating("first"), creating("second", slug)
    assert await both(world, first, second) == ["done", "invalid"]
    assert await monitors_of(world) == MOST


@pytest.mark.parametrize("applied_first", [True, False])
async def test_a_bundle_and_a_creation_stay_within_the_limit(
    world: World, applied_first: bool
) -> None:
    await world.monitor()
    create = creating("own")
    first, second = (apply, create) if applied_first else (create, apply)
    assert await both(world, first, second) == ["done", "invalid"]
    assert await monitors_of(world) == MOST
