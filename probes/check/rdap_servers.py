"""RDAP servers of top-level domains, in the form of the registry of IANA (RFC 9224).

A part of that registry: of the domains that are registered most, those whose server is known. For
any other domain the monitor names the server.
"""

from typing import Final

_IDENTITY: Final = "https://rdap.identitydigital.services/rdap/"
_GOOGLE: Final = "https://pubapi.registry.google/rdap/"
_RADIX: Final = "https://rdap.radix.host/rdap/"
_CENTRALNIC: Final = "https://rdap.centralnic.com/{}/"

SERVERS: Final = {
    "com": "https://rdap.verisign.com/com/v1/",
    "net": "https://rdap.verisign.com/net/v1/",
    "cc": "https://tld-rdap.verisign.com/cc/v1/",
    "name": "https://tld-rdap.verisign.com/name/v1/",
    "tv": "https://tld-rdap.verisign.com/tv/v1/",
    "org": "https://rdap.publicinterestregistry.org/rdap/",
    "br": "https://rdap.registro.br/",
    "ca": "https://rdap.ca.fury.ca/rdap/",
    "cz": "https://rdap.nic.cz/",
    "fi": "https://rdap.fi/rdap/rdap/",
    "fr": "https://rdap.nic.fr/",
    "id": "https://rdap.pandi.id/rdap/",
    "nl": "https://rdap.sidn.nl/",
    "no": "https://rdap.norid.no/",
    "pl": "https://rdap.dns.pl/",
    "uk": "https://rdap.nominet.uk/uk/",
    **dict.fromkeys(("info", "live", "mobi", "pro", "world"), _IDENTITY),
    **dict.fromkeys(("app", "dev", "page"), _GOOGLE),
    **dict.fromkeys(("online", "site", "store", "tech"), _RADIX),
    **{tld: _CENTRALNIC.format(tld) for tld in ("art", "blog", "build", "xyz")},
}


def server_of(domain: str) -> str:
    """Returns the base URL of the server of a domain, "" if it is not known."""
    return SERVERS.get(domain.rpartition(".")[2], "")
