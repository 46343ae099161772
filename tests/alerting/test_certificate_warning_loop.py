"""A certificate that ends soon warns the channels that take warnings, once."""

from typing import Any

import pytest
import trio

from leadline.daemon.loops.mailers import certificate_teller
from leadline.daemon.loops.mailers.warning_teller import WarningTeller
from leadline.storage.alerting.queries.open_warnings import NO_WARNINGS, select_warnings
from leadline.storage.alerting.rules import outage_text
from leadline.storage.alerting.transactions import tell_certificate
from leadline.storage.alerting.transactions.tell_certificate import CertificateOutcome
from leadline.storage.core.instant import DAY, HOUR, MINUTE, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.monitors.queries.certificates import select_certificates
from leadline.storage.monitors.rows import CertificateReport, MonitorRow
from leadline.storage.monitors.rules.certificate import CertificateUnknown
from leadline.storage.monitors.rules.monitor import MonitorDraft
from leadline.storage.monitors.tables.certificates import (
    AHEAD_US,
    record_certificates,
)
from leadline.storage.regional.rules import RegionSpread
from leadline.storage.regional.transactions import create_any, edit_any
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from tests.alerting.test_alert_processor_loop import Story
from tests.alerting.test_slow_warning_loop import ENDED, WARNED, execute, told, warned_monitor
from tests.alerting.test_slow_warning_quiet_loop import BOTH, REGIONS, SILENCE, mute
from tests.support.worlds.world import World


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


def teller_of(story: Story) -> WarningTeller:
    return WarningTeller(story.world.pool, lambda: story.world.now)


async def certified_monitor(story: Story, **given: Any) -> MonitorRow:
    fields = {"warn_certificate_days": 21, "interval_seconds": 60, **given}
    return await warned_monitor(story, **fields)


async def saw(story: Story, row: MonitorRow, *days: float | None, revision: int = 0) -> int:
    """A check sees certificates with the days left; None is one without TLS."""
    reports = [
        CertificateReport(
            row.key,
            revision or row.revision,
            None if left is None else Instant(round(story.world.now + left * DAY)),
            story.world.now,
        )
        for left in days
    ]
    async with story.world.pool.transaction("saw") as tx:
        return await record_certificates(tx, reports)


async def members_saw(story: Story, *days: int | None) -> None:
    """A check in each region of the only regional monitor sees a certificate, in None no check."""
    world = story.world
    members = await world.rows(
        "select org, id, revision from monitors where regional_of <> id order by id"
    )
    reports = [
        CertificateReport(
            MonitorKey((org, monitor)), revision, Instant(world.now + left * DAY), world.now
        )
        for (org, monitor, revision), left in zip(members, days, strict=True)
        if left is not None
    ]
    async with world.pool.transaction("saw") as tx:
        assert await record_certificates(tx, reports) == len(reports)


def later(story: Story, us: int) -> None:
    story.world.now = Instant(story.world.now + us)


async def certificate(story: Story, row: MonitorRow) -> tuple[int | None, str | None]:
    """Returns the days left of the certificate that counts, and the reason without one."""
    async with story.world.pool.transaction("look", read_only=True) as tx:
        found = (await select_certificates(tx, [row.key]))[row.key]
    left = None if found.ends_at is None else round((found.ends_at - story.world.now) / DAY)
    return left, found.unknown


async def since(story: Story, row: MonitorRow) -> Instant | None:
    async with story.world.pool.transaction("look", read_only=True) as tx:
        found = await select_warnings(tx, [row.key])
    return found.get(MonitorKey(row.key), NO_WARNINGS).certificate


async def test_a_certificate_that_ends_soon_warns_once_and_a_new_one_ends_it(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 22)
    assert await teller.pass_once() == 0
    later(story, 26 * HOUR)
    assert await teller.pass_once() == 1
    assert await since(story, row) == story.world.now
    other = teller_of(story)
    assert await teller.pass_once() + await other.pass_once() == 0
    assert await told(story) == BOTH[:1]
    await saw(story, row, 90)
    assert await teller.pass_once() == 1
    assert await teller.pass_once() == 0
    assert (await since(story, row), await told(story)) == (None, BOTH)
    assert (await story.world.state(row))[0] == "pending"


async def test_the_old_certificate_of_one_of_two_servers_is_told_once(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    old, new = Instant(story.world.now + 10 * DAY), Instant(story.world.now + 90 * DAY)
    changes = 0
    for number in range(30):
        later(story, 20 * MINUTE)
        end = old if number % 3 == 0 else new
        report = CertificateReport(row.key, row.revision, end, story.world.now)
        async with story.world.pool.transaction("saw") as tx:
            assert await record_certificates(tx, [report]) == 1
        changes += await teller.pass_once()
    assert (changes, await told(story)) == (1, BOTH[:1])
    for _ in range(4):
        later(story, 20 * MINUTE)
        await saw(story, row, 90)
        changes += await teller.pass_once()
    assert (changes, await told(story)) == (2, BOTH)


async def test_a_check_of_an_earlier_revision_sets_no_certificate(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    assert await saw(story, row, 10) == 1
    await story.edit(row, target="https://other.example/")
    assert await certificate(story, row) == (None, CertificateUnknown.NOT_SEEN)
    assert await saw(story, row, 5) == 0
    assert await teller.pass_once() == 0
    assert await saw(story, row, 90, revision=row.revision + 1) == 1
    assert await certificate(story, row) == (90, None)
    assert await saw(story, row, 5) == 0
    assert await certificate(story, row) == (90, None)


async def test_an_edit_ends_no_warning_before_the_next_handshake(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 10)
    assert await teller.pass_once() == 1
    await story.edit(row, description="Renamed")
    assert await teller.pass_once() == 0
    assert await since(story, row) is not None
    await saw(story, row, None, revision=row.revision + 1)
    assert await certificate(story, row) == (None, CertificateUnknown.NO_TLS)
    assert await teller.pass_once() == 1
    assert await told(story) == BOTH


async def test_checks_without_tls_end_a_warning_after_the_window(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 60)
    for _ in range(4):
        later(story, 20 * MINUTE)
        await saw(story, row, None)
    assert await certificate(story, row) == (None, CertificateUnknown.NO_TLS)
    later(story, 45 * DAY)
    assert await teller.pass_once() == 0
    await saw(story, row, 10)
    assert await teller.pass_once() == 1
    for _ in range(3):
        later(story, 20 * MINUTE)
        await saw(story, row, None)
        assert await teller.pass_once() == 0
    later(story, MINUTE)
    await saw(story, row, None)
    assert (await teller.pass_once(), await told(story)) == (1, BOTH)


async def test_a_region_without_checks_keeps_no_warning(story: Story) -> None:
    world = story.world
    await story.channel("warnings")
    await execute(story, "update notification_channels set takes_warnings = true")
    draft = MonitorDraft(
        type="http", name="Shop", target="https://shop.example/", warn_certificate_days=21
    )
    async with world.pool.transaction("create") as tx:
        spread, regions = RegionSpread(REGIONS), frozenset(REGIONS)
        whole = await create_any(
            tx, world.editor, world.project_uid, draft, spread, world.keyring, regions
        )
    await members_saw(story, 60, 60, 60)
    later(story, 40 * DAY)
    teller = teller_of(story)
    await members_saw(story, None, 90, 90)
    assert (await certificate(story, whole), await teller.pass_once()) == ((90, None), 0)
    later(story, MINUTE)
    await members_saw(story, 10, 90, 90)
    assert (await certificate(story, whole), await teller.pass_once()) == ((10, None), 1)
    for _ in range(4):
        later(story, 20 * MINUTE)
        await members_saw(story, None, None, 90)
    assert (await teller.pass_once(), await told(story)) == (1, BOTH)


async def test_a_replaced_certificate_ends_its_warning_at_the_latest_with_its_end(
    story: Story,
) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 1 / 48)
    assert await teller.pass_once() == 1
    later(story, 20 * MINUTE)
    await saw(story, row, 90)
    assert await teller.pass_once() == 0
    later(story, 10 * MINUTE)
    assert (await teller.pass_once(), await told(story)) == (1, BOTH)


@pytest.mark.parametrize(
    ("schedule", "window"),
    [("", HOUR), ("0 3 * * 1", 60 * DAY), ("0,5 3 * * *", 10 * (DAY - 5 * MINUTE))],
)
async def test_the_window_has_the_checks_of_a_schedule(
    story: Story, schedule: str, window: int
) -> None:
    row = await certified_monitor(story, schedule=schedule)
    await saw(story, row, 10)
    assert await story.world.rows("select window_us from monitor_certificates") == [(window,)]


async def test_a_clock_that_is_set_back_hides_no_new_certificate(story: Story) -> None:
    row, now = await certified_monitor(story), story.world.now
    later(story, 9 * DAY)
    await saw(story, row, 20)
    story.world.now = now
    for _ in range(5):
        later(story, 20 * MINUTE)
        await saw(story, row, 90)
    assert await certificate(story, row) == (90, None)


async def test_a_reporter_with_an_earlier_revision_replaces_no_newer_row(story: Story) -> None:
    row = await certified_monitor(story)
    await saw(story, row, 90)
    # A concurrent reporter of the next revision was first, and this one waited for its lock.
    await execute(story, "update monitor_certificates set revision = revision + 1")
    assert await saw(story, row, 5) == 0
    stored = await story.world.rows("select revision from monitor_certificates")
    assert stored == [(row.revision + 1,)]


async def test_a_report_does_not_wait_for_the_deletion_of_its_monitor(story: Story) -> None:
    row, other = await certified_monitor(story), await story.world.monitor(name="Other")
    done = trio.Event()

    async def delete(task_status: trio.TaskStatus[None]) -> None:
        async with story.world.pool.transaction("delete") as tx:
            await tx.rows("select 1 from monitors where id = %(id)s for update", id=row.id)
            task_status.started()
            await done.wait()

    async with trio.open_nursery() as nursery:
        await nursery.start(delete)
        with trio.fail_after(4):
            assert await saw(story, row, 10) == 0
            assert await saw(story, other, 10) == 1
        done.set()


async def test_a_pass_has_bounds_and_the_next_one_continues(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate of many monitors, some of which fail, is told in several passes."""
    monkeypatch.setattr(certificate_teller, "DECISIONS_MOST", 2)
    monkeypatch.setattr(certificate_teller, "BATCH_MOST", 3)
    teller, beats = teller_of(story), list[int]()
    teller.beat_with(lambda: beats.append(1))
    for number in range(5):
        one = await story.world.monitor(name=f"Shop {number}", warn_certificate_days=21)
        await saw(story, one, 10)
    title = outage_text.certificate_title

    def fail(name: str, ends_at: Instant, now: Instant) -> str:
        if name in ("Shop 0", "Shop 1"):
            raise RuntimeError("broken")
        return title(name, ends_at, now)

    monkeypatch.setattr(tell_certificate, "certificate_title", fail)
    assert [await teller.pass_once() for _ in range(3)] == [0, 2, 1]
    assert len(beats) >= 5
    monkeypatch.setattr(certificate_teller, "PAGES_MOST", 1)
    monkeypatch.undo()
    assert sum([await teller.pass_once() for _ in range(3)]) == 2


async def test_a_plain_answer_does_not_hide_a_certificate(story: Story) -> None:
    row = await certified_monitor(story)
    assert await certificate(story, row) == (None, CertificateUnknown.NOT_SEEN)
    await saw(story, row, 10)
    await saw(story, row, None)
    assert await certificate(story, row) == (10, None)


async def test_a_report_from_the_future_is_left_out(story: Story) -> None:
    row = await certified_monitor(story)
    report = CertificateReport(
        row.key, row.revision, story.world.now, Instant(story.world.now + AHEAD_US + 1)
    )
    async with story.world.pool.transaction("saw") as tx:
        assert await record_certificates(tx, [report]) == 0
    assert await certificate(story, row) == (None, CertificateUnknown.NOT_SEEN)


async def test_an_unreachable_target_keeps_its_certificate(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 30)
    later(story, 12 * DAY)
    await story.is_now(row, False)
    assert await teller.pass_once() == 1
    assert await certificate(story, row) == (18, None)
    later(story, 12 * DAY)
    assert await teller.pass_once() == 0


async def test_a_removed_setting_ends_the_warning(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 10)
    await teller.pass_once()
    await execute(story, "update monitors set warn_certificate_days = 0")
    assert await teller.pass_once() == 1
    assert await teller.pass_once() == 0
    assert await told(story) == BOTH


async def test_a_monitor_without_the_setting_warns_never(story: Story) -> None:
    row, teller = await certified_monitor(story, warn_certificate_days=0), teller_of(story)
    await saw(story, row, 1)
    assert await teller.pass_once() == 0
    assert await certificate(story, row) == (1, None)


async def test_silence_and_maintenance_delay_a_begin_and_no_end(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 10)
    await execute(story, SILENCE)
    assert await teller.pass_once() == 0
    await execute(story, "delete from settings where name = 'alerting'")
    await story.maintain(row, 10 * MINUTE)
    assert await teller.pass_once() == 0
    later(story, 2 * HOUR)
    assert await teller.pass_once() == 1
    await mute(story, row.id)
    await execute(story, SILENCE)
    await saw(story, row, 90)
    assert await teller.pass_once() == 1
    assert await told(story) == BOTH


async def test_a_paused_monitor_begins_no_warning(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 10)
    await execute(story, "update monitors set enabled = false")
    assert await teller.pass_once() == 0
    await execute(story, "update monitors set enabled = true")
    assert await teller.pass_once() == 1


async def test_a_deleted_monitor_ends_its_warning(story: Story) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 10)
    await teller.pass_once()
    async with story.world.pool.transaction("delete") as tx:
        await delete_monitor(tx, story.world.editor, row.uid)
    assert await told(story) == BOTH
    assert await teller.pass_once() == 0


@pytest.mark.parametrize("is_muted", [True, False])
async def test_a_regional_monitor_warns_once_for_its_members(story: Story, is_muted: bool) -> None:
    world = story.world
    await story.channel("warnings")
    await execute(story, "update notification_channels set takes_warnings = true")
    draft = MonitorDraft(
        type="http", name="Shop", target="https://shop.example/", warn_certificate_days=21
    )
    async with world.pool.transaction("create") as tx:
        spread, regions = RegionSpread(REGIONS), frozenset(REGIONS)
        whole = await create_any(
            tx, world.editor, world.project_uid, draft, spread, world.keyring, regions
        )
    assert await certificate(story, whole) == (None, CertificateUnknown.NOT_SEEN)
    await members_saw(story, 10, 90, 12)
    assert await certificate(story, whole) == (10, None)
    if is_muted:
        await mute(story, whole.id)
    teller = teller_of(story)
    assert await teller.pass_once() == (0 if is_muted else 1)
    assert await teller.pass_once() == 0
    assert await told(story) == ([] if is_muted else BOTH[:1])


async def test_a_regional_monitor_takes_the_setting_of_its_members(story: Story) -> None:
    world = story.world
    await story.channel("warnings")
    await execute(story, "update notification_channels set takes_warnings = true")
    draft = MonitorDraft(type="http", name="Shop", target="https://shop.example/")
    regions = frozenset(REGIONS)
    async with world.pool.transaction("create") as tx:
        spread = RegionSpread(REGIONS)
        whole = await create_any(
            tx, world.editor, world.project_uid, draft, spread, world.keyring, regions
        )
    given = {"warn_certificate_days": 21}
    async with world.pool.transaction("edit") as tx:
        await edit_any(tx, world.editor, whole.uid, given, RegionSpread(), world.keyring, regions)
    days = "select distinct warn_certificate_days from monitors"
    assert await world.rows(days) == [(21,)]
    # As a bundle that gives it to the members only.
    await execute(story, "update monitors set warn_certificate_days = 0 where regional_of = id")
    await members_saw(story, 10, 90, 90)
    teller = teller_of(story)
    assert (await teller.pass_once(), await told(story)) == (1, BOTH[:1])
    await execute(story, "update monitors set warn_certificate_days = 0")
    assert (await teller.pass_once(), await told(story)) == (1, BOTH)


async def test_a_failing_monitor_does_not_stop_the_others(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    broken = await story.world.monitor(name="Broken", warn_certificate_days=21)
    title = outage_text.certificate_title

    def fail(name: str, ends_at: Instant, now: Instant) -> str:
        if name == "Broken":
            raise RuntimeError("broken")
        return title(name, ends_at, now)

    monkeypatch.setattr(tell_certificate, "certificate_title", fail)
    await saw(story, broken, 10)
    await saw(story, row, 10)
    assert await teller.pass_once() == 1
    assert await told(story) == [("warnings", WARNED)]
    monkeypatch.undo()
    assert await teller.pass_once() == 1
    assert ("warnings", ENDED) not in await told(story)


async def test_a_silence_that_begins_after_the_read_delays_the_warning(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, teller = await certified_monitor(story), teller_of(story)
    await saw(story, row, 10)
    await execute(story, SILENCE)

    async def none_quiet(*_: object) -> set[MonitorKey]:
        return set()

    with monkeypatch.context() as patch:
        patch.setattr(certificate_teller, "select_quiet", none_quiet)
        assert await teller.pass_once() == 0
    assert teller._certificates.told == {CertificateOutcome.LATER: 1}


async def test_many_monitors_that_wait_cost_one_read(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate_teller, "BATCH_MOST", 2)
    teller = teller_of(story)
    for number in range(5):
        one = await story.world.monitor(name=f"Shop {number}", warn_certificate_days=21)
        await saw(story, one, 10)
    await execute(story, SILENCE)
    assert (await teller.pass_once(), teller._certificates.told) == (0, {})
    await execute(story, "delete from settings where name = 'alerting'")
    assert await teller.pass_once() == 5
