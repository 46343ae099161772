"""SVG elements with all values escaped: the only module that builds markup by hand."""

from markupsafe import Markup, escape

# Pattern in the definitions of the page. A style sheet cannot refer to it.
HATCH = "url(#hatch)"
# Time before the first data is a low hatched line in every plot, since no data was due. A hatch of
# full height is time whose data is missing.
BEFORE_SAID = "no data yet"


def element(name: str, *children: Markup | str, **attributes: object) -> Markup:
    """Returns an element. `class_` becomes class, `aria_label` aria-label. None is omitted."""
    parts = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    inner = "".join(escape(child) for child in children)
    opening = f"<{name}{''.join(parts)}"
    return Markup(f"{opening}>{inner}</{name}>" if inner else f"{opening}/>")  # noqa: S704 - escaped above


def joined(*pieces: Markup) -> Markup:
    return Markup("").join(pieces)


def before(from_: float, to: float, foot: float, high: float, said: str = BEFORE_SAID) -> Markup:
    """Returns the line of time before the first data. `from_` and `to` are shares of the width.

    `said` is the hover text, empty if the element around it has one.
    """
    place = {"x": share(from_, 1), "width": share(to - from_, 1)}
    told = [title(said)] if said else []
    return element("rect", *told, **place, y=foot - high, height=high, fill=HATCH)


def title(text: str) -> Markup:
    return element("title", text)


def stretched(width: float, height: float, *children: Markup) -> Markup:
    """Returns an SVG with its own units, stretched over the full width.

    Strokes that must not scale need `vector-effect`.
    """
    return element(
        "svg",
        *children,
        width="100%",
        height=height,
        viewBox=f"0 0 {trimmed(width)} {trimmed(height)}",
        preserveAspectRatio="none",
    )


def trimmed(value: float) -> str:
    """Returns at most two decimals, without trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def share(part: float, whole: float) -> str:
    return f"{trimmed(100 * part / whole if whole else 0)}%"


def _text(value: object) -> str:
    return trimmed(value) if isinstance(value, float) else str(value)
