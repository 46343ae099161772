"""Elements as text, every value escaped: the one place where markup is put together by hand."""

from markupsafe import Markup, escape

# A pattern of the page's own definitions; a style sheet could not name it.
HATCH = "url(#hatch)"


def element(name: str, *children: Markup | str, **attributes: object) -> Markup:
    """An element; `class_` and `aria_label` become class and aria-label, None is left out."""
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


def title(text: str) -> Markup:
    return element("title", text)


def stretched(width: float, height: float, *children: Markup) -> Markup:
    """Drawn in units of its own over the whole width; strokes that must not scale say so."""
    return element(
        "svg",
        *children,
        width="100%",
        height=height,
        viewBox=f"0 0 {trimmed(width)} {trimmed(height)}",
        preserveAspectRatio="none",
    )


def trimmed(value: float) -> str:
    """At most two decimals, and none where there are none to tell."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def share(part: float, whole: float) -> str:
    return f"{trimmed(100 * part / whole if whole else 0)}%"


def _text(value: object) -> str:
    return trimmed(value) if isinstance(value, float) else str(value)
