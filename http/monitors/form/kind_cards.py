"""Names of the monitor types, and their cards: name, purpose and words for the search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ....probes.check.monitor_spec import Spec

FIRST_SHOWN: Final = 9
# In the order of the cards. Types that are not here follow with their help text.
_CARDS: Final = {
    "http": ("HTTP", "A URL: status, body, headers, certificate", "web https site api"),
    "push": ("Push", "A job that reports by itself", "heartbeat cron job"),
    "tcp": ("TCP", "A port that accepts connections", "port socket"),
    "dns": ("DNS", "A record and its value", "name resolver"),
    "tls": ("TLS certificate", "Time until it expires", "ssl expiry"),
    "postgres": ("PostgreSQL", "A query against a database", "sql database"),
    "promql": ("PromQL", "A query against Prometheus", "metrics"),
    "synthetic": ("Synthetic", "Several HTTP steps in a row", "scenario flow login"),
    "composite": ("Composite", "A rule over other monitors", "group quorum"),
    "icmp": ("Ping", "Answers to ICMP echo requests", "icmp host"),
    "mysql": ("MySQL", "A query against a database", "sql mariadb database"),
    "redis": ("Redis", "A server that answers commands", "cache valkey"),
    "rabbitmq": ("RabbitMQ", "A broker that accepts connections", "amqp queue"),
    "grpc": ("gRPC", "The health service of a server", "rpc"),
    "websocket": ("WebSocket", "A connection that answers messages", "ws wss"),
    "domain": ("Domain", "Time until a domain name expires", "rdap whois registrar expiry"),
    "smtp": ("SMTP", "A mail server, its TLS and a login", "mail email submission"),
    "ssh": ("SSH", "A command and its exit status", "shell"),
    "async_canary": ("Async canary", "A transaction that ends later", "workflow order"),
}


@dataclass(frozen=True, slots=True)
class KindCard:
    type: str
    name: str
    purpose: str
    words: str


def kind_name(kind: str) -> str:
    """Returns the name of a type, the type itself if it has none."""
    return _CARDS[kind][0] if kind in _CARDS else kind


def cards(specs: Sequence[Spec]) -> list[KindCard]:
    """Returns a card for every type."""
    order = list(_CARDS)
    found = []
    for spec in specs:
        kind = str(spec.type)
        name, purpose, words = _CARDS.get(kind, (kind, spec.help, ""))
        found.append(KindCard(kind, name, purpose, f"{kind} {name} {purpose} {words}".lower()))
    place = {kind: at for at, kind in enumerate(order)}
    return sorted(found, key=lambda card: place.get(card.type, len(order)))
