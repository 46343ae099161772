"""Reads of the domains of status pages."""

from typing import Final

from ...engine.pools import Tx

_LISTED: Final = """
select n.domain, g.slug from status_page_domains n
  join status_pages g on g.org = n.org and g.id = n.page
where g.visibility = 'listed'
"""


async def select_domains(tx: Tx) -> dict[str, str]:
    """Returns the domains of listed pages with the slug of the page."""
    return dict(await tx.rows(_LISTED))
