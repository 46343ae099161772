"""Burn gauge: a bar from 0 to 1 000 with a tick at the threshold, logarithmic above 1.

A rate of 1 uses the budget up exactly over its window. An undecidable rate is hatched.
"""

from fractions import Fraction
from math import log10

from markupsafe import Markup

from . import svg

HEIGHT = 12
DECADES = 4
_GRID = (0.25, 0.5, 0.75)
_LABELS = ((0.0, "0", ""), (0.25, "1×", "mid"), (0.5, "10×", "mid"), (0.75, "100×", "mid wide"))


def gauge(rate: Fraction | None, threshold: Fraction, class_: str, label: str) -> Markup:
    """Returns the gauge. `class_` fills the bar, `label` describes the gauge."""
    track = {"width": "100%", "y": 2, "height": HEIGHT - 4, "rx": 2}
    if rate is None:
        drawn = [svg.element("rect", fill=svg.HATCH, **track)]
    else:
        drawn = [svg.element("rect", class_="f-base", **track)]
        drawn += [_threshold_line(at, "grid", 0, HEIGHT) for at in _GRID]
        if rate > 0:
            bar = {**track, "width": svg.share(place(rate), 1)}
            drawn.append(svg.element("rect", class_=class_, **bar))
    drawn.append(_threshold_line(place(threshold), "thr", -3, HEIGHT + 3))
    return svg.element("svg", *drawn, class_="gauge", height=HEIGHT, role="img", aria_label=label)


def scale() -> Markup:
    """Returns the labelled scale below a gauge."""
    texts = [
        svg.element("text", text, class_=class_ or None, x=svg.share(at, 1), y=11)
        for at, text, class_ in (*_LABELS, (1.0, "1000×", "end"))
    ]
    return svg.element("svg", *texts, class_="gauge", height=14, aria_hidden="true")


def place(rate: Fraction) -> float:
    """Returns the position from 0 to 1: linear up to rate 1, logarithmic above."""
    value = float(rate)
    if value <= 0:
        return 0.0
    if value < 1:
        return value / DECADES
    return min((1 + log10(value)) / DECADES, 1.0)


def spelt_rate(rate: Fraction) -> str:
    """Returns `14.4×`, `183×`: at most three digits, truncated."""
    if rate >= 100:
        return f"{int(rate)}×"
    tenths = int(10 * rate)
    if rate and not tenths:
        return "< 0.1×"
    whole, tenth = divmod(tenths, 10)
    return f"{whole}.{tenth}×" if tenth else f"{whole}×"


def _threshold_line(at: float, class_: str, y1: int, y2: int) -> Markup:
    x = svg.share(at, 1)
    return svg.element("line", class_=class_, x1=x, x2=x, y1=y1, y2=y2)
