"""A reach with a lag watcher, a nameserver and a certificate authority of the tests."""

from contextlib import suppress
from pathlib import Path

import pytest
import trio
import trustme

from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.net.resolver import Resolver
from leadline.probes.net.resolver_files import HostFiles
from tests.support.peers.servers import Names, Prober
from tests.support.run.effort import IS_SOAK

CANCELLING = {"leaves_nothing", "nothing_left_behind"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that cancel runs, so that a soak run repeats them with more cancellations."""
    for item in items:
        if not IS_SOAK or not item.path.is_relative_to(Path(__file__).parent):
            continue
        code = getattr(getattr(item, "function", None), "__code__", None)
        if code is not None and not CANCELLING.isdisjoint(code.co_names):
            item.add_marker(pytest.mark.soak)


@pytest.fixture
async def names(nursery: trio.Nursery) -> Names:
    """A nameserver on its own port, over UDP and TCP."""
    names = Names()
    while True:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        names.port = listeners[0].socket.getsockname()[1]
        sock = trio.socket.socket(trio.socket.AF_INET, trio.socket.SOCK_DGRAM)
        try:
            await sock.bind(("127.0.0.1", names.port))
            break
        except OSError:
            # Another test has this port for UDP.
            sock.close()
            await listeners[0].aclose()

    async def by_udp() -> None:
        with sock:
            while True:
                wire, peer = await sock.recvfrom(4_096)
                reply = names.reply(wire)
                if reply is not None:
                    await sock.sendto(reply, peer)

    async def by_tcp(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError):
            await names.converse(stream)

    nursery.start_soon(by_udp)
    nursery.start_soon(trio.serve_listeners, by_tcp, listeners)
    return names


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="session")
def authority_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture
async def prober(nursery: trio.Nursery, names: Names, authority_file: Path) -> Prober:
    """A prober that reaches private addresses, and uses the nameserver and the CA of the tests."""
    files = HostFiles(hosts=Path("/nonexistent"), nameservers=(names.server,))
    reach = make_reach(probe_policy(), resolver=Resolver(files), authorities=authority_file)
    await nursery.start(reach.lag.watch)
    return Prober(reach)
