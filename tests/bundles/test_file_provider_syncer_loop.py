"""File providers apply the bundles of a directory. A file with an error changes no object."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.daemon.loops import file_provider_syncer as providers
from leadline.daemon.loops.bundles import bundle_directory
from leadline.daemon.loops.file_provider_syncer import (
    AGAIN_US,
    FileProviderConfig,
    FileProviderSyncer,
)
from leadline.probes.check.monitor_spec import MonitorType
from leadline.storage.accounts.rules.access import CredentialKind, Principal
from leadline.storage.accounts.tables import projects
from leadline.storage.bundles.queries import select_files, select_providers
from leadline.storage.bundles.rows import FileRow
from leadline.storage.bundles.rules.bundle import Bundle
from leadline.storage.bundles.rules.bundle_yaml import read_text
from leadline.storage.bundles.transactions.apply_bundle import write_bundle
from leadline.storage.bundles.transactions.bundle_context import ApplyContext
from leadline.storage.bundles.transactions.release_provider import Released, release_provider
from leadline.storage.core.instant import Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.monitors.transactions.write_batch import MonitorWriteBatch
from tests.support.worlds.world import REGIONS, World

HEAD = "format: 1\norganization: acme\nproject: shop\nmonitors:\n"
WEB = "  web: {name: Web, type: http, target: 'https://example.org/'}\n"
API = "  api: {name: Api, type: http, target: 'https://api.example.org/'}\n"

Look = Callable[[], Awaitable[int]]


def provider(
    world: World,
    directory: Path,
    scope: str = "",
    process: UUID | None = None,
    *,
    take_over: bool = False,
) -> Look:
    ground = ApplyContext(keyring=world.keyring, regions=REGIONS, reserved={}, raw_days=30)
    watching = FileProviderSyncer(
        world.pool,
        process or uuid7(),
        [FileProviderConfig("files", directory, scope, take_over=take_over)],
        ground,
        trio.CapacityLimiter(1),
        lambda: None,
    )
    return watching.pass_once


async def monitors(world: World) -> dict[str, tuple[bool, bool]]:
    """The monitors by slug: (enabled, orphaned)."""
    rows = await world.rows(
        "select slug, enabled, orphaned_at is not null from monitors order by slug"
    )
    return {slug: (enabled, orphan) for slug, enabled, orphan in rows}


async def file(world: World, path: str = "shop.yaml") -> FileRow:
    async with world.pool.transaction("look", read_only=True) as tx:
        (found,) = [row for row in await select_files(tx) if row.path == path]
    return found


async def provider_row(world: World) -> Any:
    async with world.pool.transaction("look", read_only=True) as tx:
        (found,) = await select_providers(tx)
    return found


async def test_a_file_is_applied_once_it_was_the_same_twice(world: World, tmp_path: Path) -> None:
    look = provider(world, tmp_path)
    (tmp_path / "shop.yaml").write_text(HEAD + WEB)
    assert await look() == 0
    assert (await file(world)).status == "pending"
    (tmp_path / "shop.yaml").write_text(HEAD + WEB + API)
    assert await look() == 0
    assert await monitors(world) == {}
    assert await look() == 1
    assert await monitors(world) == {"web": (True, False), "api": (True, False)}
    assert await look() == 0
    row = await file(world)
    assert (row.status, row.generation, row.project) == ("applied", 1, world.project_uid)
    told = await provider_row(world)
    assert (told.is_held, told.managed_monitors, told.bundle_errors) == (True, 2, 0)
    assert told.last_success == world.now


async def test_an_invalid_file_keeps_the_applied_state(world: World, tmp_path: Path) -> None:
    look = provider(world, tmp_path)
    shop = tmp_path / "shop.yaml"
    shop.write_text(HEAD + "  web: {name: Web, type: htp}\n")
    await look()
    row = await file(world)
    assert row.status == "rejected"
    assert row.last_error == (
        f"line 5, column 20: monitors.web.type: must be one of {', '.join(MonitorType)}"
    )
    shop.write_text(HEAD + WEB)
    await look()
    await look()
    for text, why in (
        (HEAD + WEB + WEB, "line 6, column 3: 'web' is given twice"),
        ("x: [", "line 2, column 1: did not find"),
        (
            HEAD + "  web: {name: Web, type: push}\n",
            "line 5, column 20: monitors.web.type: is http",
        ),
    ):
        shop.write_text(text)
        await look()
        await look()
        row = await file(world)
        assert (row.status, row.generation) == ("degraded", 1)
        assert row.last_error.startswith(why), row.last_error
        assert (row.organization, row.project_slug) == ("acme", "shop")
        assert await monitors(world) == {"web": (True, False)}
    assert (await provider_row(world)).bundle_errors == 1
    shop.write_text(HEAD + WEB)
    await look()
    assert await look() == 1


async def test_a_refused_file_is_tried_again(world: World, tmp_path: Path) -> None:
    """The missing object can have been created since."""
    look = provider(world, tmp_path)
    (tmp_path / "shop.yaml").write_text(
        HEAD + "  web: {name: Web, type: http, target: 'http://x/', depends_on: [till]}\n"
    )
    await look()
    await look()
    assert "names 'till'" in (await file(world)).last_error
    await world.monitor(slug="till")
    assert await look() == 0
    world.now = Instant(world.now + AGAIN_US)
    assert await look() == 1


async def test_a_file_that_goes_leaves_orphans_at_the_second_look(
    world: World, tmp_path: Path
) -> None:
    look = provider(world, tmp_path)
    for name, text in (("a.yaml", WEB), ("b.yaml", API)):
        (tmp_path / name).write_text(HEAD + text)
    await look()
    assert await look() == 2
    (tmp_path / "b.yaml").unlink()
    await look()
    assert await monitors(world) == {"web": (True, False), "api": (True, False)}
    await look()
    assert await monitors(world) == {"web": (True, False), "api": (False, True)}
    # The last one is not believed: a mount that is away looks the same.
    (tmp_path / "a.yaml").unlink()
    for _ in range(3):
        await look()
    assert (await monitors(world))["web"] == (True, False)
    assert "no longer contains a bundle" in (await provider_row(world)).last_error
    await trio.to_thread.run_sync(tmp_path.rmdir)
    await look()
    assert "cannot be read" in (await provider_row(world)).last_error
    assert (await monitors(world))["web"] == (True, False)


async def test_an_entry_moves_between_files_without_a_gap(world: World, tmp_path: Path) -> None:
    look = provider(world, tmp_path)
    one, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    one.write_text(HEAD + WEB + API)
    await look()
    await look()
    one.write_text(HEAD + API)
    other.write_text(HEAD + WEB)
    for _ in range(3):
        await look()
        assert await monitors(world) == {"web": (True, False), "api": (True, False)}
    assert await world.rows("select action from audit_entries") == []
    assert await world.rows("select bundle_path from monitors where slug = 'web'") == [("b.yaml",)]


async def test_two_files_with_the_same_entry_are_reported(world: World, tmp_path: Path) -> None:
    look = provider(world, tmp_path)
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(HEAD + WEB)
    for _ in range(3):
        await look()
    assert (await file(world, "a.yaml")).status == "applied"
    row = await file(world, "b.yaml")
    assert (row.status, row.last_error) == ("rejected", "names the monitor web, as a.yaml does")


async def test_an_entry_of_two_files_belongs_to_the_first_by_name(
    world: World, tmp_path: Path
) -> None:
    look = provider(world, tmp_path)
    (tmp_path / "b.yaml").write_text(HEAD + WEB)
    await look()
    await look()
    (tmp_path / "a.yaml").write_text(HEAD + WEB)
    for _ in range(3):
        await look()
    assert (await file(world, "a.yaml")).status == "applied"
    row = await file(world, "b.yaml")
    assert (row.status, row.last_error) == ("degraded", "names the monitor web, as a.yaml does")
    # When the first file no longer names the monitor, the second file has it again.
    (tmp_path / "a.yaml").write_text(HEAD + API)
    world.now = Instant(world.now + AGAIN_US)
    for _ in range(3):
        await look()
    assert await monitors(world) == {"web": (True, False), "api": (True, False)}


async def test_an_entry_removed_from_one_project_is_orphaned_only_there(
    world: World, tmp_path: Path
) -> None:
    async with world.pool.transaction("found") as tx:
        await projects.insert_project(tx, world.org, uuid7(), "mill", "Mill")
    look = provider(world, tmp_path)
    shop, mill = tmp_path / "shop.yaml", tmp_path / "mill.yaml"
    shop.write_text(HEAD + WEB + API)
    mill.write_text((HEAD + WEB).replace("project: shop", "project: mill"))
    await look()
    assert await look() == 2
    shop.write_text(HEAD + API)
    await look()
    await look()
    rows = await world.rows(
        "select p.slug, m.enabled from monitors m join projects p on p.id = m.project "
        "where m.slug = 'web' order by p.slug"
    )
    assert rows == [("mill", True), ("shop", False)]


async def test_an_internal_error_of_one_file_does_not_affect_the_others(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def faulty(
        tx: Tx, together: MonitorWriteBatch, project: UUID, bundle: Bundle, *rest: Any
    ) -> Any:
        if "web" in bundle.monitors:
            raise KeyError("a fault of ours")
        return await write_bundle(tx, together, project, bundle, *rest)

    monkeypatch.setattr(providers, "write_bundle", faulty)
    look = provider(world, tmp_path)
    for name, text in (("a.yaml", WEB), ("b.yaml", API)):
        (tmp_path / name).write_text(HEAD + text)
    await look()
    assert await look() == 1
    assert await monitors(world) == {"api": (True, False)}
    row = await file(world, "a.yaml")
    assert row.status == "error"
    assert "because of an internal error" in row.last_error


@pytest.mark.parametrize(
    ("fault", "status", "told"),
    [
        (KeyError("a fault of ours"), "error", "because of an internal error"),
        (Refused("invalid", "monitors.api", "cannot be left"), "degraded", "cannot be left"),
    ],
)
async def test_a_removed_file_that_fails_does_not_block_the_others(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception,
    status: str,
    told: str,
) -> None:
    faults: list[Exception] = []

    async def faulty(
        tx: Tx, together: MonitorWriteBatch, project: UUID, bundle: Bundle, *rest: Any
    ) -> Any:
        if faults and not bundle.monitors:
            raise faults[0]
        return await write_bundle(tx, together, project, bundle, *rest)

    monkeypatch.setattr(providers, "write_bundle", faulty)
    look = provider(world, tmp_path)
    for name, text in (("a.yaml", WEB), ("b.yaml", API)):
        (tmp_path / name).write_text(HEAD + text)
    await look()
    assert await look() == 2
    faults.append(fault)
    (tmp_path / "b.yaml").unlink()
    (tmp_path / "a.yaml").write_text(HEAD + WEB.replace("Web", "Net"))
    await look()
    assert await look() == 1, "the other file is not applied"
    row = await file(world, "b.yaml")
    assert row.status == status
    assert told in row.last_error
    assert (await monitors(world))["api"] == (True, False)
    faults.clear()
    await look()
    assert (await monitors(world))["api"] == (True, False), (
        "the removed file was tried again too early"
    )
    world.now = Instant(world.now + AGAIN_US)
    await look()
    assert (await monitors(world))["api"] == (False, True)


async def test_an_unchanged_file_is_read_once(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Mock(wraps=read_text)
    monkeypatch.setattr(bundle_directory, "read_text", read)
    look = provider(world, tmp_path)
    (tmp_path / "shop.yaml").write_text(HEAD + WEB)
    for _ in range(4):
        await look()
    assert read.call_count == 1
    assert (await file(world)).generation == 1


async def test_a_file_that_names_another_project_leaves_the_first(
    world: World, tmp_path: Path
) -> None:
    async with world.pool.transaction("found") as tx:
        await projects.insert_project(tx, world.org, uuid7(), "mill", "Mill")
    look = provider(world, tmp_path, "acme/*")
    shop = tmp_path / "shop.yaml"
    shop.write_text(HEAD + WEB)
    await look()
    await look()
    shop.write_text((HEAD + WEB).replace("project: shop", "project: mill"))
    await look()
    await look()
    rows = await world.rows(
        "select p.slug, m.enabled, m.orphaned_at is not null from monitors m "
        "join projects p on p.id = m.project order by p.slug"
    )
    assert rows == [("mill", True, False), ("shop", False, True)]


@pytest.mark.parametrize("scope", ["acme/mill", "other/*"])
async def test_a_provider_refuses_a_bundle_of_another_project(
    world: World, tmp_path: Path, scope: str
) -> None:
    look = provider(world, tmp_path, scope)
    (tmp_path / "shop.yaml").write_text(HEAD + WEB)
    await look()
    await look()
    row = await file(world)
    assert row.last_error == (f"line 3, column 1: project: is another than the provider's, {scope}")
    assert await monitors(world) == {}


async def test_one_process_syncs_a_directory(world: World, tmp_path: Path) -> None:
    first, second = provider(world, tmp_path), provider(world, tmp_path)
    (tmp_path / "shop.yaml").write_text(HEAD + WEB)
    await first()
    for _ in range(3):
        assert await second() == 0
    assert await monitors(world) == {}
    async with world.pool.transaction("expire") as tx:
        await tx.execute("update bundle_providers set lease_until = clock_timestamp()")
    assert await second() == 1
    assert await first() == 0


async def test_bounds_of_a_directory(world: World, tmp_path: Path) -> None:
    look = provider(world, tmp_path)
    (tmp_path / "big.yaml").write_bytes(b"#" * (3 << 19) + b"#")
    (tmp_path / ".hidden.yaml").write_text("no")
    (tmp_path / "notes.txt").write_text("no")
    (tmp_path / "raw.yaml").write_bytes(b"\xff")
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    await look()
    assert (await file(world, "big.yaml")).last_error == "is larger than 1572864 bytes"
    assert (await file(world, "raw.yaml")).last_error == "is not UTF-8"
    assert "cannot be read" in (await file(world, "gone.yaml")).last_error
    async with world.pool.transaction("look", read_only=True) as tx:
        assert len(await select_files(tx)) == 3
    for n in range(101):
        (tmp_path / f"f{n}.yaml").write_text("")
    await look()
    assert "more than 100 bundles" in (await provider_row(world)).last_error


async def test_a_named_pipe_among_the_files_does_not_block(world: World, tmp_path: Path) -> None:
    look = provider(world, tmp_path)
    (tmp_path / "a.yaml").write_text(HEAD + WEB)
    os.mkfifo(tmp_path / "pipe.yaml")
    with trio.fail_after(60):
        await look()
        assert await look() == 1
    assert (await file(world, "pipe.yaml")).last_error == "is not a file"


async def test_an_edit_and_an_application_wait_for_each_other(world: World, tmp_path: Path) -> None:
    """Both change the same monitors repeatedly; no change is lost and no transaction is refused."""
    looks = provider(world, tmp_path)
    shop = tmp_path / "shop.yaml"
    made = await world.monitor(slug="other")
    shop.write_text(HEAD + WEB + API)
    await looks()
    await looks()

    async def edit() -> None:
        for n in range(20):
            async with world.pool.transaction("edit") as tx:
                given = {"interval_seconds": 30 + n}
                await edit_monitor(tx, world.editor, made.uid, given, world.keyring, REGIONS)

    async def apply() -> None:
        for n in range(20):
            changed = WEB.replace("type:", f"interval_seconds: {40 + n}, type:")
            shop.write_text(HEAD + changed + API)
            await looks()
            assert await looks() == 1

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(edit)
            nursery.start_soon(apply)
    rows = await world.rows("select slug, interval_seconds from monitors order by slug")
    assert rows == [("api", 60), ("other", 49), ("web", 59)]


async def test_released_objects_can_be_edited(world: World, tmp_path: Path) -> None:
    look = provider(world, tmp_path)
    (tmp_path / "shop.yaml").write_text(
        HEAD.replace("format: 1", "format: 2") + WEB + "services:\n  shop: {name: Shop}\n"
    )
    await look()
    await look()
    operator = Principal(CredentialKind.SESSION, is_global_admin=True, label="command line")

    async def release(who: Principal, name: str) -> Released:
        async with world.pool.transaction("release") as tx:
            return await release_provider(tx, who, name)

    with pytest.raises(Refused, match="manages nothing"):
        await release(operator, "other")
    with pytest.raises(Refused, match="forbidden"):
        await release(world.editor, "files")
    assert await release(operator, "files") == Released(1, 1, 0)
    assert await world.rows("select managed_by, bundle_uid from monitors") == [("", None)]
    assert await monitors(world) == {"web": (True, False)}
    assert await world.rows("select from bundle_files") == []
    # A provider that still watches the directory leaves them to people.
    await look()
    await look()
    assert (await file(world)).status == "applied"
    assert await world.rows("select managed_by, slug from monitors") == [("", "web")]


async def test_a_provider_takes_over_objects_of_people_only_if_configured(
    world: World, tmp_path: Path
) -> None:
    await world.monitor(slug="web", name="By hand", target="https://example.org/")
    (tmp_path / "shop.yaml").write_text(HEAD + WEB)
    process = uuid7()
    look = provider(world, tmp_path, process=process)
    await look()
    await look()
    row = await file(world)
    assert row.status == "rejected"
    assert row.last_error.startswith("line 5, column 3: monitors.web: people edit it, and name"), (
        row.last_error
    )
    assert await world.rows("select managed_by, name from monitors") == [("", "By hand")]
    look = provider(world, tmp_path, process=process, take_over=True)
    world.now = Instant(world.now + AGAIN_US)
    await look()
    assert await world.rows("select managed_by, name from monitors") == [("files", "Web")]


ON_CALL = """format: 3
organization: acme
project: shop
channels:
  ops: {name: Ops, type: ntfy, config: {topic: ops}}
schedules:
  day:
    shift_seconds: 1d
    anchor_at: 2026-01-05T08:00:00Z
    participants: [{channel: ops}]
"""
NIGHT = """format: 3
organization: acme
project: shop
escalation_policies:
  night: {steps: [{after_seconds: 0, targets: [{schedule: day}]}]}
routes:
  default: {escalation_policy: night}
"""
_MARKS = """
select bundle_uid, managed_by, orphaned_at is not null from (
  select bundle_uid, managed_by, orphaned_at from notification_channels
  union all select bundle_uid, managed_by, orphaned_at from oncall_schedules
  union all select bundle_uid, managed_by, orphaned_at from escalation_policies
  union all select bundle_uid, managed_by, orphaned_at from alert_route_lists) o
where managed_by <> '' order by bundle_uid
"""


async def test_files_name_each_others_on_call_objects(world: World, tmp_path: Path) -> None:
    look = provider(world, tmp_path)
    (tmp_path / "a.yaml").write_text(ON_CALL)
    (tmp_path / "b.yaml").write_text(NIGHT)
    await look()
    assert await look() == 2
    owned = [(uid, "files", False) for uid in ("day", "night", "ops", "routes")]
    assert await world.rows(_MARKS) == owned
    # The channel moves to the other file, and the first file goes away.
    (tmp_path / "b.yaml").write_text(
        NIGHT + "channels:\n  ops: {name: Ops, type: ntfy, config: {topic: ops}}\n"
    )
    (tmp_path / "a.yaml").write_text(ON_CALL.replace("Ops, type", "Ops 2, type"))
    await look()
    await look()
    assert "names the channel ops, as a.yaml does" in (await file(world, "b.yaml")).last_error
    (tmp_path / "a.yaml").unlink()
    for _ in range(3):
        world.now = Instant(world.now + AGAIN_US)
        await look()
    assert await world.rows(_MARKS) == [
        ("day", "files", True),
        ("night", "files", False),
        ("ops", "files", False),
        ("routes", "files", False),
    ]
    async with world.pool.transaction("release") as tx:
        operator = Principal(CredentialKind.SESSION, is_global_admin=True, label="command line")
        released = await release_provider(tx, operator, "files")
    assert released.oncall == 4
    assert await world.rows(_MARKS) == []
    audited = await world.rows("select target from audit_entries where action = 'provider.release'")
    assert [row[0].endswith(" oncall=4") for row in audited] == [True]


async def test_a_removed_file_leaves_no_object_of_any_kind_managed(
    world: World, tmp_path: Path
) -> None:
    head = HEAD.replace("format: 1", "format: 3").replace("monitors:\n", "")
    (tmp_path / "a.yaml").write_text(head)
    series = "rrule: FREQ=DAILY, starts_at: '2026-01-05T02:00:00Z', duration_seconds: 1h"
    (tmp_path / "b.yaml").write_text(
        f"{head}maintenance: {{backup: {{{series}}}}}\nstatus_pages: {{shop: {{title: Shop}}}}\n"
        "project_settings: {weekly_report: true}\n"
    )
    (tmp_path / "c.yaml").write_text(f"{head}people: {{ada: {{email: ada@example.org}}}}\n")
    look = provider(world, tmp_path)
    await look()
    assert await look() == 3
    marks = """select kind from bundle_objects where managed_by <> '' and orphaned_at is null
      union all select 'person' from bundle_people order by 1"""
    kinds = [("maintenance_series",), ("person",), ("project_settings",), ("status_page",)]
    assert await world.rows(marks) == kinds
    for name in ("b.yaml", "c.yaml"):
        (tmp_path / name).unlink()
    for _ in range(2):
        await look()
    assert await world.rows(marks) == []
