"""Random histories that run on a real database, and a model that knows them completely.

The histories have results in time and late, pauses, maintenance, moves to another region, other
intervals, edits of composites, and deleted members. The model (`Painter`) computes the state of
every monitor at an instant from the specification, without code of the product.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from leadline.daemon.loops.composite_evaluator import CompositeEvaluator, CompositeScheduler
from leadline.daemon.loops.figure_repairer import Repairer
from leadline.daemon.loops.monitor_sealer import MonitorSealer
from leadline.daemon.loops.schedule_ticker import Ticker
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.transactions.edit_monitor import edit_monitor
from leadline.storage.results.event_bus import Bus
from leadline.storage.results.rules.incoming_result import StoreOutcome
from leadline.storage.results.transactions.record_results import record_results
from leadline.storage.retirement.transactions.delete_monitor import delete_monitor
from tests.support.worlds.world import REGIONS, START, World

TICK = SECOND // 2
GOOD, BAD, UNKNOWN, EXCLUDED = range(4)
FOREVER = 10**18
Stretch = tuple[int, int]
Hold = tuple[int, int]
USUAL_HOLD: Hold = (3, 90)


@dataclass
class Known:
    """The facts of one monitor, recorded by the test that caused them."""

    row: MonitorRow
    results: dict[int, bool] = field(default_factory=dict)
    maintenance: list[Stretch] = field(default_factory=list)
    # (from, enabled), read after each edit: it begins after the reserved windows.
    terms: list[tuple[int, bool]] = field(default_factory=list)
    # (from, mode, quorum, children)
    made_of: list[tuple[int, str, int, list[UUID]]] = field(default_factory=list)

    # (from, interval), read with them
    intervals: list[tuple[int, int]] = field(default_factory=list)

    def hold_us(self, instant: int, hold: Hold) -> int:
        """Returns how long a result of the instant is valid, by the interval in force then."""
        begun = [seconds for from_, seconds in self.intervals if from_ < instant]
        seconds = begun[-1] if begun else self.intervals[0][1]
        if self.row.type == "push":
            return (seconds + self.row.grace_seconds) * SECOND
        multiplier, floor = hold
        return max(multiplier * seconds, floor) * SECOND

    @property
    def pauses(self) -> list[Stretch]:
        ends = [*(from_ for from_, _ in self.terms), FOREVER][1:]
        spans = zip(self.terms, ends, strict=True)
        return [(from_, end) for (from_, enabled), end in spans if not enabled]


def within(instant: int, stretches: Iterable[Stretch]) -> bool:
    return any(from_ <= instant < until for from_, until in stretches)


class Painter:
    """Computes the state of every monitor at each half second, from the rules in the text.

    A monitor has a line: one byte for each half second from START to `until`, painted once.
    `known` must not change afterwards. A hold (intervals, minimum in seconds) determines how long
    a probed result is valid.
    """

    def __init__(self, known: dict[UUID, Known], until: int) -> None:
        self._known = known
        self._ticks = (until - START) // TICK
        self._lines: dict[tuple[UUID, Hold], bytes] = {}

    def at(self, uid: UUID, instant: int, hold: Hold = USUAL_HOLD) -> int:
        assert instant >= START
        return self._line(uid, hold)[(instant - START) // TICK]

    def split(self, uid: UUID, from_: int, until: int) -> tuple[int, ...]:
        from_ = max(from_, self._known[uid].terms[0][0])
        assert from_ % TICK == until % TICK == 0
        part = self._line(uid, USUAL_HOLD)[self._place(from_) : self._place(until)]
        assert len(part) == max(until - from_, 0) // TICK
        return tuple(TICK * part.count(colour) for colour in (GOOD, BAD, UNKNOWN, EXCLUDED))

    def _line(self, uid: UUID, hold: Hold) -> bytes:
        if (uid, hold) not in self._lines:
            self._lines[uid, hold] = self._painted(self._known[uid], hold)
        return self._lines[uid, hold]

    def _painted(self, one: Known, hold: Hold) -> bytes:
        line = self._composed(one, hold) if one.made_of else self._spoken(one, hold)
        # Later strokes cover earlier ones.
        for from_, until in one.pauses:
            self._stroke(line, UNKNOWN, from_, until)
        self._stroke(line, UNKNOWN, START, one.terms[0][0])
        for from_, until in one.maintenance:
            self._stroke(line, EXCLUDED, from_, until)
        return bytes(line)

    def _spoken(self, one: Known, hold: Hold) -> bytearray:
        """Paints each result until the next result, the end of its validity, or a maintenance or
        pause.
        """
        line = bytearray([UNKNOWN]) * self._ticks
        order = sorted(one.results)
        begun = [from_ for from_, _ in (*one.maintenance, *one.pauses)]
        for instant, following in zip(order, [*order, FOREVER][1:], strict=True):
            silences = [from_ for from_ in begun if from_ > instant]
            until = min(instant + one.hold_us(instant, hold), following, *silences)
            self._stroke(line, GOOD if one.results[instant] else BAD, instant, until)
        return line

    def _composed(self, one: Known, hold: Hold) -> bytearray:
        line = bytearray([UNKNOWN]) * self._ticks
        ends = [*(from_ for from_, *_ in one.made_of), FOREVER][1:]
        for (from_, mode, quorum, children), until in zip(one.made_of, ends, strict=True):
            part = slice(self._place(from_), self._place(until))
            lines = [self._line(child, hold)[part] for child in children]
            line[part] = bytes(_made_of(mode, quorum, each) for each in zip(*lines, strict=True))
        assert len(line) == self._ticks
        return line

    def _place(self, instant: int) -> int:
        """Returns the index of the first half second at or after `instant`, limited to the line."""
        return min(max(-((START - instant) // TICK), 0), self._ticks)

    def _stroke(self, line: bytearray, colour: int, from_: int, until: int) -> None:
        part = slice(self._place(from_), max(self._place(from_), self._place(until)))
        line[part] = bytes([colour]) * (part.stop - part.start)


@cache
def _made_of(mode: str, quorum: int, found: tuple[int, ...]) -> int:
    counting = [c for c in found if c != EXCLUDED]
    if not counting:
        return EXCLUDED
    answers = set()
    for unknown_are in (GOOD, BAD):
        ups = sum((unknown_are if c == UNKNOWN else c) == GOOD for c in counting)
        downs = len(counting) - ups
        is_down = {"all": downs > 0, "any": ups == 0, "quorum": downs >= quorum}[mode]
        answers.add(BAD if is_down else GOOD)
    return answers.pop() if len(answers) == 1 else UNKNOWN


class Life:
    """One random history, which is run step by step."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.known: dict[UUID, Known] = {}
        self.leaves: list[UUID] = []
        self.composites: list[UUID] = []
        self.gone: set[UUID] = set()
        self.ticker = Ticker(world.pool, lambda: world.now)
        self.sealer = MonitorSealer(world.pool, lambda: world.now)
        self.composer = CompositeScheduler(CompositeEvaluator(world.pool, Bus()), lambda: world.now)

    async def begin(self) -> None:
        for n in range(4):
            region = "eu" if n == 3 else "core"
            kind: dict[str, Any] = {"type": "push", "grace_seconds": 30} if n == 2 else {}
            row = await self.world.monitor(interval_seconds=60, region=region, **kind)
            await self._know(row)
            self.leaves.append(row.uid)
        for n in range(3):
            below = [*self.leaves, *self.composites]
            config = self.config([below[-1], *self.chance.sample(below[:-1], 2)])
            row = await self.world.monitor(
                type="composite", target="", interval_seconds=60, config=config, name=f"c{n}"
            )
            await self._know(row)
            self.composites.append(row.uid)
            self._made(row.uid, config)

    def config(self, children: list[UUID]) -> dict[str, Any]:
        mode = self.chance.choice(["all", "any", "quorum"])
        config: dict[str, Any] = {"children": [str(c) for c in children], "mode": mode}
        if mode == "quorum":
            config["quorum"] = self.chance.randint(1, len(children))
        return config

    def _made(self, uid: UUID, config: dict[str, Any]) -> None:
        children = [UUID(text) for text in config["children"]]
        made = (self.world.now, config["mode"], config.get("quorum", 0), children)
        self.known[uid].made_of.append(made)

    async def _know(self, row: MonitorRow) -> None:
        one = self.known.setdefault(row.uid, Known(row))
        one.row = row
        terms = await self.world.rows(
            "select from_at, enabled, interval_seconds from monitor_terms where monitor = %(m)s"
            " order by from_at",
            m=row.id,
        )
        one.terms = [(from_, enabled) for from_, enabled, _ in terms]
        one.intervals = [(from_, seconds) for from_, _, seconds in terms]

    async def live(self, until: int) -> None:
        while self.world.now < until:
            self.world.now = Instant(self.world.now + 20 * SECOND)
            await self.ticker.pass_once()
            await self.composer.pass_once()
            for uid in self.leaves:
                if uid not in self.gone and self.chance.random() < 0.35:
                    await self._record(uid, self.world.now)
            if self.chance.random() < 0.05:
                await self._happen()
            if self.chance.random() < 0.3:
                await self.sealer.pass_once()

    async def _record(self, uid: UUID, instant: Instant) -> StoreOutcome:
        up = self.chance.random() < 0.75
        arrival = self.world.result(self.known[uid].row, instant, up)
        async with self.world.pool.transaction("record") as tx:
            (answer,), _ = await record_results(tx, [arrival], patient=False)
        if answer.fate in (StoreOutcome.LIVE, StoreOutcome.HISTORY):
            assert answer.ts not in self.known[uid].results
            self.known[uid].results[answer.ts] = up
        return answer.fate

    async def _happen(self) -> None:
        happening = self.chance.choice(
            [
                self._pause,
                self._maintain,
                self._remake,
                self._remake,
                self._learn_late,
                self._move,
                self._change_interval,
            ]
        )
        await happening()

    async def _edit(self, uid: UUID, **given: Any) -> None:
        async with self.world.pool.transaction("edit") as tx:
            row = await edit_monitor(tx, self.world.editor, uid, given, self.world.keyring, REGIONS)
        await self._know(row)

    async def _pause(self) -> None:
        uid = self.chance.choice([u for u in self.known if u not in self.gone])
        await self._edit(uid, enabled=not self.known[uid].terms[-1][1])

    async def _move(self) -> None:
        uid = self.chance.choice([u for u in self.known if u not in self.gone])
        await self._edit(uid, region=self.chance.choice(["core", "eu"]))

    async def _change_interval(self) -> None:
        here = [u for u in self.known if u not in self.gone]
        uid = self.chance.choice([u for u in here if self.known[u].row.type != "push"])
        await self._edit(uid, interval_seconds=self.chance.choice([30, 60, 120]))

    async def _maintain(self) -> None:
        uid = self.chance.choice([u for u in self.known if u not in self.gone])
        from_ = self.world.now + self.chance.randint(0, 10) * MINUTE
        until = from_ + self.chance.randint(1, 20) * MINUTE
        self.known[uid].maintenance.append((from_, until))
        async with self.world.pool.transaction("maintain") as tx:
            await tx.execute(
                "insert into maintenances (org, uid, project, monitor, starts_at, ends_at,"
                " created_at) values (%(org)s, %(uid)s, %(project)s, %(monitor)s, at(%(from_)s),"
                " at(%(until)s), at(%(now)s))",
                org=self.world.org,
                uid=uuid7(),
                project=self.world.project,
                monitor=self.known[uid].row.id,
                from_=from_,
                until=until,
                now=tx.now,
            )

    async def _remake(self) -> None:
        """Changes the children of a composite, and may delete a monitor that no composite uses."""
        place = self.chance.randrange(len(self.composites))
        below = [u for u in (*self.leaves, *self.composites[:place]) if u not in self.gone]
        children = self.chance.sample(below, self.chance.randint(1, min(3, len(below))))
        config = self.config(children)
        self._made(self.composites[place], config)
        await self._edit(self.composites[place], config=config)
        used = self.in_use()
        idle = [u for u in self.leaves if u not in used and u not in self.gone]
        if idle and len(self.gone) < 2 and self.chance.random() < 0.5:
            self.gone.add(idle[0])
            async with self.world.pool.transaction("delete") as tx:
                await delete_monitor(tx, self.world.editor, idle[0])

    def in_use(self) -> set[UUID]:
        return {child for c in self.composites for child in self.known[c].made_of[-1][3]}

    async def _learn_late(self) -> None:
        uid = self.chance.choice([u for u in self.leaves if u not in self.gone])
        instant = self.world.now - self.chance.randint(1, 120) * MINUTE - 7 * SECOND
        one = self.known[uid]
        if one.row.type == "push" and within(instant, one.pauses):
            return  # A push to a paused monitor is accepted and not recorded.
        # The second of two results at one instant would be moved by a microsecond.
        if instant > START and instant not in self.known[uid].results:
            await self._record(uid, Instant(instant))

    async def end(self) -> None:
        for _ in range(3):
            self.world.now = Instant(self.world.now + 4 * MINUTE)
            await self.ticker.pass_once()
            await self.composer.pass_once()
            await self.sealer.pass_once()
        while await Repairer(self.world.pool).pass_once():
            pass
