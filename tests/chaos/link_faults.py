"""Faults of links between hosts, in one direction (half-open) or in both.

`PROBING` names those after which a target can look down from Leadline.
"""

from .faults import Fault, Scene
from .installation import AGENTS, NAMES

WORKERS = tuple(name for name in NAMES if name.startswith("worker"))
API = tuple(name for name in NAMES if name.startswith("api"))
DATABASES = ("left", "right")
PROBING = "link to the target"
Link = tuple[str, str]


def _cut(scene: Scene, pairs: list[Link]) -> str:
    """Cuts pairs of hosts, all in the same direction or all in both."""
    there = [(one, other) for one, other in pairs]
    back = [(other, one) for one, other in pairs]
    direction = scene.chance.choice(["to", "from", "and"])
    links = {"to": there, "from": back, "and": there + back}[direction]
    scene.kept["links"] = links
    scene.installation.network.cut(links)
    hosts = {other for _, other in pairs}
    return f"{pairs[0][0]} {direction} {' '.join(sorted(hosts))}"


def _heal(scene: Scene) -> None:
    links = scene.kept["links"]
    assert isinstance(links, list)
    scene.installation.network.heal(links)


def _cut_database(scene: Scene) -> str:
    name = scene.chance.choice(NAMES)
    which = scene.chance.choice([DATABASES, ("left",), ("right",)])
    return _cut(scene, [(name, node) for node in which])


def _cut_api(scene: Scene) -> str:
    name = scene.chance.choice(AGENTS)
    which = scene.chance.choice([API, API[:1], API[1:]])
    return _cut(scene, [(name, api) for api in which])


def _cut_target(scene: Scene) -> str:
    name = scene.chance.choice(WORKERS + AGENTS)
    return _cut(scene, [(name, "target")])


def _cut_receiver(scene: Scene) -> str:
    """Cuts the processes that send webhooks from the receiver."""
    senders = [name for name in NAMES if not name.startswith("worker")]
    return _cut(scene, [(name, "target") for name in senders])


def _isolate(scene: Scene) -> str:
    """Cuts a host from all others, so that its checks can prove nothing."""
    name = scene.chance.choice(WORKERS + AGENTS)
    others = [host for host in scene.installation.network.addresses if host != name]
    return _cut(scene, [(name, other) for other in others])


LINKS = (
    Fault("link to the database", _cut_database, _heal, (2, 30), weight=3),
    Fault("link of an agent", _cut_api, _heal, (2, 40), weight=2),
    Fault(PROBING, _cut_target, _heal, (2, 15)),
    Fault("link to the receiver", _cut_receiver, _heal, (2, 20)),
    Fault("host isolated", _isolate, _heal, (3, 30), weight=2),
)
