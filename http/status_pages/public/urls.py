"""Where a public page and its feeds are found, with the token that opens an unlisted one."""

from dataclasses import dataclass
from urllib.parse import urlencode

FEED_TYPES = {
    "rss": "application/rss+xml",
    "atom": "application/atom+xml",
    "json": "application/feed+json",
}


def addresses_at(base: str, slug: str, token: str | None, domain: str | None) -> "Addresses":
    """Where a page is found that may have a host name of its own: there only by TLS."""
    if domain is None or token is not None:
        return Addresses(base, slug, token)
    return Addresses(f"https://{domain}", slug, is_root=True)


@dataclass(frozen=True, slots=True)
class Addresses:
    """`base` is scheme and host. Without a token the page is listed; one with a host name of its
    own is the root there."""

    base: str
    slug: str
    token: str | None = None
    is_root: bool = False

    @property
    def page(self) -> str:
        return self._at("/" if self.is_root else f"/status/{self.slug}")

    def history(self, month: str | None = None, cursor: str | None = None) -> str:
        above = "" if self.is_root else f"/status/{self.slug}"
        return self._at(f"{above}/history", month=month, cursor=cursor)

    @property
    def subscribe(self) -> str:
        """On the host where the reader is: a form is sent nowhere else."""
        opens = f"?{urlencode({'token': self.token})}" if self.token else ""
        return f"/status/{self.slug}/subscribe{opens}"

    def feed(self, form: str) -> str:
        """`form` is one of FEED_TYPES."""
        return self._at(f"/api/v1/public/status-pages/{self.slug}/feed", format=form)

    def _at(self, path: str, **query: str | None) -> str:
        given = {name: value for name, value in {**query, "token": self.token}.items() if value}
        return f"{self.base}{path}" + (f"?{urlencode(given)}" if given else "")
