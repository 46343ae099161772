"""A reach with a lag watcher, a nameserver and a certificate authority of the tests."""

from pathlib import Path

import pytest
import trio
import trustme

from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import probe_policy
from leadline.probes.net.resolver import Resolver
from leadline.probes.net.resolver_files import HostFiles
from tests.support.peers.servers import Names, Prober, open_names
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
    return await open_names(nursery)


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
