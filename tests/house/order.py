"""The order of features and sublayers: an import goes to the same or an earlier entry of a list."""

from dataclasses import dataclass
from typing import Final

FEATURES: Final[dict[str, tuple[str, ...]]] = {
    "probes": (
        "check",
        "net",
        "kinds",
        "senders",
        "oidc",
        "jobs",
        "domain_proof",
        "probe_kind",
        "runner",
    ),
    "storage": (
        "core",
        "engine",
        "backups",
        "accounts",
        "notifications",
        "oncall",
        "scheduling",
        "monitors",
        "results",
        "agents",
        "figures",
        "services",
        "maintenance",
        "mutes",
        "incidents",
        "alerting",
        "objectives",
        "gate",
        "changes",
        "status_pages",
        "retirement",
        "regional",
        "bulk",
        "bundles",
    ),
    "http": (
        "auth",
        "wire",
        "ui",
        "accounts",
        "notifications",
        "oncall",
        "monitors",
        "agents",
        "services",
        "maintenance",
        "mutes",
        "alerting",
        "objectives",
        "gate",
        "changes",
        "status_pages",
        "incidents",
        "retirement",
        "importers",
        "bundles",
        "home",
        "server",
    ),
    "daemon": (
        "runtime",
        "config",
        "agent",
        "loops",
        "process",
        "cli",
    ),
}
# The technical division of a feature. In `storage` the order also applies between features.
SUBLAYERS: Final[dict[str, tuple[str, ...]]] = {
    "storage": (
        "rules",
        "rows",
        "tables",
        "queries",
        "transactions",
    ),
    "http": (
        "schemas",
        "public",
        "routes",
        "console",
        "form",
    ),
}
# Features of `storage` and `http` that have no sublayers.
UNDIVIDED: Final = {
    "storage": {"core", "engine"},
    "http": {"auth", "wire", "ui", "importers", "server"},
}
# Modules of a divided feature that belong to no sublayer.
BESIDE_SUBLAYERS: Final = {
    # Carries events between the tasks of one process: it has state, and no SQL.
    "storage.results.event_bus",
}


@dataclass(frozen=True)
class Place:
    """The place of a module: its layer, its feature, and the sublayer if the layer has some."""

    layer: str
    feature: str
    sublayer: str = ""

    @property
    def feature_rank(self) -> int:
        return FEATURES[self.layer].index(self.feature)

    @property
    def sublayer_rank(self) -> int:
        return SUBLAYERS[self.layer].index(self.sublayer)


def place_of(module: str) -> Place | None:
    """Returns the place of a module such as `storage.gate.tables.gate_policies`; None if its folder
    is in no list. A package of a layer itself (`storage`) has no place either."""
    layer, *rest = module.split(".")
    if not rest or rest[0] not in FEATURES.get(layer, ()):
        return None
    feature = rest[0]
    if layer not in SUBLAYERS or feature in UNDIVIDED[layer]:
        return Place(layer, feature)
    if len(rest) == 1 or module in BESIDE_SUBLAYERS:
        return Place(layer, feature)
    return Place(layer, feature, rest[1]) if rest[1] in SUBLAYERS[layer] else None


def is_table(module: str) -> bool:
    place = place_of(module)
    return place is not None and place.layer == "storage" and place.sublayer == "tables"


# Modules outside `rules` that are as pure as rules.
PURE_MODULES: Final = {
    "probes.check.check",
    "probes.check.condition",
    "probes.check.result",
    "probes.jobs.agent_protocol",
}


def is_pure(module: str) -> bool:
    """Returns whether a module must have no async function, clock, randomness or I/O."""
    place = place_of(module)
    in_rules = place is not None and (place.layer == "storage" and place.sublayer == "rules")
    return in_rules or module in PURE_MODULES or module.startswith("storage.core")
