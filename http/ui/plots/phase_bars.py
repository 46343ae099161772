"""Bar of a check's phases as shares of its duration. The unfinished phase is red."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from . import svg

HEIGHT = 12


@dataclass(frozen=True, slots=True)
class Part:
    """Duration of a phase, µs. `failed` marks the unfinished phase, which gets the rest."""

    name: str
    us: int
    failed: bool = False


def phases(parts: Sequence[Part], label: str) -> Markup:
    """Returns the bar. `parts` omits phases that were not reached."""
    total = sum(part.us for part in parts)
    drawn = []
    at = 0
    for number, part in enumerate(parts):
        if part.us > 0:
            class_ = "f-down" if part.failed else ("f-data" if number % 2 == 0 else "f-d2")
            drawn.append(
                svg.element(
                    "rect",
                    svg.title(f"{part.name} {_ms(part.us)} ms"),
                    class_=class_,
                    x=svg.share(at, total),
                    width=svg.share(part.us, total),
                    height=HEIGHT,
                )
            )
        at += part.us
    if not total:
        drawn = [svg.element("rect", class_="f-base", width="100%", height=HEIGHT)]
    said = ", ".join(
        f"{part.name} {'did not finish' if part.failed else _ms(part.us) + ' ms'}" for part in parts
    )
    return svg.element(
        "svg", *drawn, class_="phases", height=HEIGHT, role="img", aria_label=f"{label}: {said}"
    )


def _ms(us: int) -> str:
    return f"{us / 1000:.1f}".removesuffix(".0")
