"""URLs of a public page and its feeds, with the token of an unlisted page."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

FEED_TYPES = {
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "json": "application/feed+json",
}


def addresses_at(
    base: str, slug: str, token: str | None, domain: str | None, lang: str | None = None
) -> "Addresses":
    """Returns the URLs of a page. A page domain is served over TLS only."""
    if domain is None or token is not None:
        return Addresses(base, slug, token, lang=lang)
    return Addresses(f"https://{domain}", slug, is_root=True, lang=lang)


@dataclass(frozen=True, slots=True)
class Addresses:
    """URLs of a page.

    `base` is scheme and host. A listed page has no token. On its own domain, a page is the root.
    """

    base: str
    slug: str
    token: str | None = None
    is_root: bool = False
    # Language that the reader chose.
    lang: str | None = None

    @property
    def page(self) -> str:
        return self._at("/" if self.is_root else f"/status/{self.slug}")

    def history(self, month: str | None = None, cursor: str | None = None) -> str:
        above = "" if self.is_root else f"/status/{self.slug}"
        return self._at(f"{above}/history", month=month, cursor=cursor)

    def month(self, name: str | None = None) -> str:
        """Returns the URL of the report of a month, by default of the last one that is over."""
        above = "" if self.is_root else f"/status/{self.slug}"
        return self._at(f"{above}/month", month=name)

    def incident(self, uid: UUID) -> str:
        """Returns the permanent URL of an incident."""
        above = "" if self.is_root else f"/status/{self.slug}"
        return self._at(f"{above}/incidents/{uid}")

    @property
    def subscribe(self) -> str:
        """Returns a URL on the current host, because the policy allows forms only there."""
        return self._with_query(f"/status/{self.slug}/subscribe", {})

    def feed(self, form: str) -> str:
        """Returns the URL of a feed. `form` is one of FEED_TYPES."""
        return self._at(f"/api/v1/public/status-pages/{self.slug}/feed", format=form)

    def _at(self, path: str, **query: str | None) -> str:
        return self._with_query(f"{self.base}{path}", query)

    def _with_query(self, url: str, query: Mapping[str, str | None]) -> str:
        every = {**query, "token": self.token, "lang": self.lang}
        given = {name: value for name, value in every.items() if value}
        return url + (f"?{urlencode(given)}" if given else "")
