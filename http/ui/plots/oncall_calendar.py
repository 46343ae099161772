"""On-call calendar, one row per week: a tint and a name per person.

Hand-offs have thick ticks, overrides are dashed on top, gaps are red frames, and a line marks now.
All positions are shares of a week.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from . import svg

ROW = 64
TOP = 20
BAR = 28
TINTS = 6
# Shares of the width below which a shift has no name, on wide and on narrow screens.
NAMED_SHARE = 0.1
_NAMED_ON_PHONES = 0.4
# Approximate number of characters across the width, on wide and on narrow screens.
_LETTERS = 110
_LETTERS_ON_PHONES = 45


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCallSpan:
    """Shift or override within a week.

    `from_` and `to` are shares of the week. `person` counts from 0. `said` is the hover text.
    """

    from_: float
    to: float
    name: str
    person: int
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCallWeek:
    """Week of the calendar.

    `days` are (start, label) pairs. `turns` are the shifts without overrides, and `seen` are the
    parts that no override covers. In `gaps` nobody is on call.
    """

    days: Sequence[tuple[float, str]]
    turns: Sequence[OnCallSpan]
    seen: Sequence[OnCallSpan]
    overrides: Sequence[OnCallSpan] = field(default=())
    hand_offs: Sequence[float] = field(default=())
    gaps: Sequence[OnCallSpan] = field(default=())
    now: float | None = None


def calendar(weeks: Sequence[OnCallWeek], said: str, *, dense: bool = False) -> Markup:
    """Returns the calendar. If `dense`, shifts have neither names nor ticks."""
    rows = [_row(week, TOP + number * ROW, dense) for number, week in enumerate(weeks)]
    heads = [
        svg.element("text", name, x=svg.share(at + 0.005, 1), y=12)
        for (at, _), name in zip(weeks[0].days, _DAYS, strict=False)
    ]
    return svg.element(
        "svg",
        *heads,
        *rows,
        class_="turns",
        height=TOP + ROW * len(weeks),
        role="img",
        aria_label=said,
    )


def tint(person: int) -> str:
    """Returns the CSS class of a person's tint. Tints repeat."""
    return f"p{person % TINTS + 1}"


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def _row(week: OnCallWeek, top: int, dense: bool) -> Markup:
    bar = top + 24
    drawn = [
        svg.element("line", class_="grid", x1="0", x2="100%", y1=top, y2=top),
        *(_tick(at, top, top + ROW - 8, "grid") for at, _ in week.days[1:]),
        *(
            svg.element(
                "text",
                text,
                # Narrow screens show only the first label of a week.
                class_="wide" if number else None,
                x=svg.share(at + 0.005, 1),
                y=top + 15,
            )
            for number, (at, text) in enumerate(week.days)
        ),
        *(_bar(span, bar, tint(span.person), BAR, said=not dense) for span in week.turns),
        *(_bar(span, bar, "gap", BAR) for span in week.gaps),
    ]
    if not dense:
        drawn += [_tick(at, bar - 2, bar + BAR + 2, "hand-off") for at in week.hand_offs]
        drawn += [_name(span, bar) for span in week.seen if _has_room(span)]
    drawn += [_bar(span, bar - 1, "override", BAR + 2) for span in week.overrides]
    drawn += [_name(span, bar) for span in week.overrides if _has_room(span)]
    if week.now is not None:
        drawn.append(_tick(week.now, top + 4, bar + BAR + 4, "now"))
    return svg.joined(*drawn)


def _has_room(span: OnCallSpan) -> bool:
    return span.to - span.from_ >= NAMED_SHARE


def _bar(span: OnCallSpan, y: int, class_: str, height: int, *, said: bool = True) -> Markup:
    return svg.element(
        "rect",
        *([svg.title(span.said)] if said else []),
        class_=class_,
        x=svg.share(span.from_, 1),
        width=svg.share(span.to - span.from_, 1),
        y=y,
        height=height,
    )


def _name(span: OnCallSpan, bar: int) -> Markup:
    share = span.to - span.from_
    on_phones = share >= _NAMED_ON_PHONES
    room = int(share * (_LETTERS_ON_PHONES if on_phones else _LETTERS))
    text = span.name if len(span.name) <= room else f"{span.name[: room - 1]}…"
    return svg.element(
        "text",
        text,
        class_="who-name" if on_phones else "who-name wide",
        x=svg.share(span.from_ + 0.012, 1),
        y=bar + 18,
    )


def _tick(at: float, y1: int, y2: int, class_: str) -> Markup:
    x = svg.share(at, 1)
    return svg.element("line", class_=class_, x1=x, x2=x, y1=y1, y2=y2)
