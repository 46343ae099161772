"""Badge: a small SVG with a name and a state."""

from typing import Final

from markupsafe import Markup

from . import svg
from .xml_text import legal

HEIGHT: Final = 20
# Mean character width in px, without font metrics: it fits every sans-serif at 11 px.
_CHARACTER: Final = 6.8
_SIDE: Final = 6
TEXT_LONGEST: Final = 60

_COLORS: Final = {
    "up": "#0b6b54",
    "degraded": "#8a5300",
    "down": "#b02a17",
    "maint": "#445aa8",
    "unknown": "#56616b",
    "pending": "#56616b",
}
_GROUND: Final = "#12191f"


def badge(name: str, said: str, mark: str) -> str:
    """Returns a badge. `mark` is that of a status, such as `up`."""
    name, said = _clipped(name), _clipped(said)
    left, right = _width(name), _width(said)
    whole = left + right
    found = svg.element(
        "svg",
        svg.title(f"{name}: {said}"),
        svg.element("rect", width=whole, height=HEIGHT, rx=4, fill=_COLORS[mark]),
        # Rounded corners on the left only.
        svg.element(
            "path",
            d=f"M4 0H{svg.trimmed(left)}V{HEIGHT}H4a4 4 0 0 1-4-4V4a4 4 0 0 1 4-4z",
            fill=_GROUND,
        ),
        _text(name, 0, left),
        _text(said, left, right),
        xmlns="http://www.w3.org/2000/svg",
        width=whole,
        height=HEIGHT,
        role="img",
        aria_label=f"{name}: {said}",
    )
    return str(found)


def _text(text: str, x: float, width: float) -> Markup:
    return svg.element(
        "text",
        text,
        x=x + width / 2,
        y=14,
        textLength=width - 2 * _SIDE,
        lengthAdjust="spacingAndGlyphs",
        text_anchor="middle",
        fill="#fff",
        font_family="system-ui,sans-serif",
        font_size="11",
    )


def _width(text: str) -> float:
    return 2 * _SIDE + _CHARACTER * max(len(text), 1)


def _clipped(text: str) -> str:
    text = " ".join(legal(text).split())
    return text if len(text) <= TEXT_LONGEST else f"{text[: TEXT_LONGEST - 1]}…"
