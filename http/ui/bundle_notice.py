"""Notice on screens of monitors and services that a bundle manages.

It also states whether the API refuses edits of the object.
"""

from dataclasses import dataclass

from ...storage.bundles.rules.bundle_diff import API, FromBundle


@dataclass(frozen=True, slots=True)
class Managed:
    is_read_only: bool
    text: str


def managed(row: FromBundle) -> Managed | None:
    """Returns the notice, None if users edit the object."""
    if not row.managed_by:
        return None
    source = (
        "a bundle that was applied"
        if row.managed_by == API
        else f"{row.bundle_path}, which the provider {row.managed_by} reads"
    )
    if row.orphaned_at is not None:
        said = f"It came from {source}, and is no longer named there: so it was disabled."
        return Managed(False, f"{said} It may be edited and deleted here.")
    called = f"It comes from {source}, where it is called {row.bundle_uid}"
    return Managed(True, f"{called}: it is changed there.")
