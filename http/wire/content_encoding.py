"""Negotiation of gzip responses by Accept-Encoding (RFC 9110, 12.5.3)."""

from collections.abc import Mapping


def takes_gzip(headers: Mapping[str, str]) -> bool:
    """Returns whether gzip is listed, by name or `*`, with a weight above 0."""
    weights: dict[str, float] = {}
    for item in headers.get("accept-encoding", "").split(","):
        name, _, weight = item.partition(";")
        weights[name.strip().lower()] = _weight(weight)
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _weight(text: str) -> float:
    name, _, value = text.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(value)
    except ValueError:
        return 0.0
