"""Notice on screens of objects that a bundle manages.

It also states whether the API refuses edits of the object.
"""

from dataclasses import dataclass
from typing import Final

from ...storage.bundles.rules.bundle_diff import API, FromBundle
from ...storage.bundles.rules.bundle_owner import name_of

# Message of a refused edit of such an object.
MANAGED_SAID: Final = "Managed by a bundle; edit it there."


@dataclass(frozen=True, slots=True)
class Managed:
    is_read_only: bool
    text: str


def managed(row: FromBundle, *, orphan_works: bool = False) -> Managed | None:
    """Returns the notice, None if users edit the object.

    `orphan_works`: an orphan of this kind is not disabled.
    """
    if not row.managed_by:
        return None
    source = f"{row.bundle_path} (provider {row.managed_by})"
    if row.managed_by == API:
        source = f"the bundle {name_of(row.bundle_path)}"
    if row.orphaned_at is not None:
        said = f"No longer in {source}." if orphan_works else f"Disabled: no longer in {source}."
        return Managed(False, f"{said} It can be edited and deleted here.")
    called = f"Managed by {source} as {row.bundle_uid}"
    return Managed(True, f"{called}. Edit it there.")
