"""A database for each test, cloned from a template that was migrated once; and what a test needs.

The server is an embedded one without fsync, its files in memory where there is room. It outlives
the tests and ends with the session.
`LEADLINE_TEST_DSN` names another (as superuser), on which databases are made and dropped.
"""

import os
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from hypothesis import HealthCheck, settings
from psycopg.conninfo import make_conninfo

from leadline.storage.core.instant import Instant
from leadline.storage.engine.embedded_access import write_access_files
from leadline.storage.engine.embedded_layout import EmbeddedLayout, environment, make_place
from leadline.storage.engine.migrate import migrate
from leadline.storage.engine.pools import Pool, open_pool
from tests.support.processes.chromium import executable
from tests.support.processes.memory import in_memory
from tests.support.processes.prepared_cluster import initialized
from tests.support.run.effort import IS_SOAK
from tests.support.run.kinds import kind_of
from tests.support.worlds.databases import Databases

if TYPE_CHECKING:
    from leadline.http.auth.passwords import Passwords

pytest_plugins = ["tests.support.app.fixtures"]

# Examples of a property that does not state a number, by the kind of its test.
_OTHER_EXAMPLES = 100 if IS_SOAK else 20
_EXAMPLES = {
    "process": 150 if IS_SOAK else 30,
    "probes": 2_000 if IS_SOAK else 20,
    "rule": 2_000 if IS_SOAK else 20,
}
for _kind in ("other", *_EXAMPLES):
    settings.register_profile(
        _kind,
        # No test asserts a duration.
        deadline=None,
        max_examples=_EXAMPLES.get(_kind, _OTHER_EXAMPLES),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
settings.load_profile("other")

# The fixture with the name of the database that the tests of a kind clone; others `migrated`.
_TEMPLATES = {
    "loop": "world_template",
    "storage": "world_template",
    "api": "cast_template",
    "screen": "cast_template",
    "public": "cast_template",
}

# 2026-01-05T00:00:00Z, a Monday: where a test does not say otherwise, it is always now.
FROZEN_NOW = Instant(1_767_571_200_000_000)

# A hash at the real cost needs 46 MiB and runs in threads of low priority, which starve on a busy
# machine.
PASSWORD_MEMORY_KIB = 64

# The real cost of a passphrase, 0.4 s of CPU, is paid by the journeys of backups.
BACKUP_KEY_COST = 1 << 10

# What provides a program that a test needs.
OPENID_PROVIDER = Path(__file__).parent / "support/openid/node_modules/oidc-provider"
PROVIDED_BY = {
    "nginx": "apt-get install nginx",
    "tinyproxy": "apt-get install tinyproxy",
    "curl": "apt-get install curl",
    "debootstrap": "apt-get install debootstrap",
    "dpkg-deb": "apt-get install dpkg",
    "promtool": "apt-get install prometheus",
    "prometheus": "apt-get install prometheus",
    "prometheus-alertmanager": "apt-get install prometheus-alertmanager",
    "chromium": "apt-get install chromium-headless-shell",
    "systemd-analyze": "apt-get install systemd",
    "pg_dump": "apt-get install postgresql-client",
    "pg_createcluster": "apt-get install postgresql",
    "pgbouncer": "apt-get install pgbouncer",
    "mariadbd": "apt-get install mariadb-server",
    "rabbitmq-server": "apt-get install rabbitmq-server",
    "redis-server": "apt-get install redis-server",
    "prometheus-blackbox-exporter": "apt-get install prometheus-blackbox-exporter",
    "patroni": "apt-get install patroni",
    "etcd": "apt-get install etcd-server",
    "faketime": "apt-get install faketime",
    "haproxy": "apt-get install haproxy",
    "ip": "apt-get install iproute2",
    "openssl": "apt-get install openssl",
    "ssh-keygen": "apt-get install openssh-client",
    "sshd": "apt-get install openssh-server",
    "named": "apt-get install bind9",
    "knotd": "apt-get install knot",
    "dovecot": "apt-get install dovecot-imapd dovecot-submissiond",
    "/usr/lib/dovecot/imap-login": "apt-get install dovecot-imapd",
    "/usr/lib/dovecot/submission-login": "apt-get install dovecot-submissiond",
    "unshare": "apt-get install util-linux",
    "node": "apt-get install nodejs npm",
    "oidc-provider": "npm ci --prefix tests/support/openid",
    "root": "run the tests as root",
}


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Loads the profile of the kind before Python imports a file, which reads it."""
    if isinstance(collector, pytest.Module):
        kind = kind_of(collector.path)
        settings.load_profile(kind if kind in _EXAMPLES else "other")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests of rules, and under soak what a soak run repeats with more examples: the
    rules, and the properties of transactions."""
    for item in items:
        kind = kind_of(item.path)
        if kind == "rule":
            item.add_marker(pytest.mark.rule)
        if IS_SOAK and (kind == "rule" or (kind == "storage" and _is_property(item))):
            item.add_marker(pytest.mark.soak)


def _is_property(item: pytest.Item) -> bool:
    return bool(getattr(getattr(item, "function", None), "is_hypothesis_test", False))


def _is_there(need: str) -> bool:
    if need == "root":
        return os.geteuid() == 0
    if need == "chromium":
        return executable() is not None
    if need == "oidc-provider":
        return OPENID_PROVIDER.is_dir()
    return shutil.which(need) is not None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test whose need is missing, or fails it where LEADLINE_NO_SKIPS=1 forbids skips."""
    for mark in item.iter_markers("needs"):
        for need in mark.args:
            if _is_there(need):
                continue
            message = f"needs {need}: {PROVIDED_BY.get(need, f'put {need} on the PATH')}"
            if os.environ.get("LEADLINE_NO_SKIPS") == "1":
                pytest.fail(message, pytrace=False)
            pytest.skip(message)


@pytest.fixture(scope="session", autouse=True)
def _few_authorities() -> Iterator[None]:
    """Trusts one authority in place of the 140 of the host, whose loading takes 40 ms of CPU for
    each TLS context. A test that sets OpenSSL's variables gets the authorities of its files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "The authority of no server")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    pem = made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()
    load = ssl.SSLContext.load_default_certs

    def load_one(context: ssl.SSLContext, purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH) -> None:
        if {"SSL_CERT_FILE", "SSL_CERT_DIR"} & os.environ.keys():
            load(context, purpose)
        else:
            context.load_verify_locations(cadata=pem)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl.SSLContext, "load_default_certs", load_one)
        yield


@pytest.fixture(autouse=True)
def _monitors_have_the_same_ids_each_time(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A monitor's id says where its windows lie: a random one would ask another question in each
    run, and the one that a test does not withstand once in some hundreds."""
    group = request.node.get_closest_marker("xdist_group")
    # pytest-xdist adds the group, but a test has the same ids in one process and in four.
    drawn = Random(request.node.nodeid.removesuffix(f"@{group.args[0]}" if group else ""))
    milliseconds = count(FROZEN_NOW // 1000)

    def uuid7() -> UUID:
        # RFC 9562, section 5.7.
        version, variant = 7 << 76, 2 << 62
        random = drawn.getrandbits(12) << 64 | drawn.getrandbits(62)
        return UUID(int=next(milliseconds) << 80 | version | variant | random)

    monkeypatch.setattr("leadline.storage.monitors.transactions.create_monitor.uuid7", uuid7)


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A short path that other users can reach, as the server runs as another user when we are root.
    (tmp_path is 0700 and may be too long for a socket.)"""
    path = Path(tempfile.mkdtemp(prefix="leadline-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def server_dsn() -> Iterator[str]:
    """A superuser's DSN of the session's server."""
    given = os.environ.get("LEADLINE_TEST_DSN")
    if given:
        yield given
        return
    folder = Path(tempfile.mkdtemp(prefix="leadline-", dir=in_memory()))
    folder.chmod(0o755)
    place = make_place(folder)
    place.runner.make_folder(place.cluster)
    subprocess.run(
        place.initdb(place.cluster, durable=False), check=True, capture_output=True, cwd="/"
    )
    write_access_files(place)
    process = subprocess.Popen(
        # A test executes most statements once or twice, and planning takes most of their time. A
        # plan for given values takes longer than one for all values. `.ci/run` repeats the tests
        # of storage with the default.
        [
            *place.server(durable=False),
            *("-c", "max_connections=200"),
            *("-c", "plan_cache_mode=force_generic_plan"),
        ],
        stderr=(folder / "postgres.log").open("wb"),
        env=environment(),
        cwd="/",
    )
    try:
        _await_ready(place, process)
        yield make_conninfo(host=str(place.socket_dir), user="leadline", dbname="postgres")
    finally:
        # Immediate: nothing in it is worth a checkpoint.
        process.send_signal(signal.SIGQUIT)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _await_ready(place: EmbeddedLayout, process: "subprocess.Popen[bytes]") -> None:
    pid_file = place.cluster / "postmaster.pid"
    while not (pid_file.exists() and pid_file.read_text().rstrip().endswith("ready")):
        assert process.poll() is None, place.log.read_text()
        time.sleep(0.005)


@pytest.fixture(scope="session")
def databases(server_dsn: str) -> Iterator[Databases]:
    databases = Databases(server_dsn)
    with pytest.MonkeyPatch.context() as patch:
        databases.warm.install(patch)
        yield databases
    databases.close()


@pytest.fixture(scope="session")
def migrated(databases: Databases) -> Iterator[str]:
    """The name of a database that has every migration applied."""
    with databases.made("template0", migrate) as name:
        yield name


@pytest.fixture(scope="session")
def cast_template(databases: Databases, migrated: str) -> Iterator[str]:
    """The name of a migrated database that contains the cast of `tests/support/app/cast.py`."""
    # Imported here: the cast imports the whole of http, which most folders do not need.
    from tests.support.app.cast import make_cast

    with databases.made(migrated, make_cast, keep=True) as name:
        yield name


@pytest.fixture(scope="session")
def world_template(databases: Databases, migrated: str) -> Iterator[str]:
    """The name of a migrated database with the world of `tests/support/worlds/world.py`."""
    from tests.support.worlds.world import make_world

    with databases.made(migrated, make_world, keep=True) as name:
        yield name


@pytest.fixture(scope="session")
def paging_template(databases: Databases, migrated: str) -> Iterator[str]:
    """The name of a migrated database with the world and clock of `paging_world`."""
    from tests.support.worlds.paging_world import make_paging_world

    with databases.made(migrated, make_paging_world, keep=True) as name:
        yield name


@pytest.fixture(scope="session")
def passwords() -> "Passwords":
    """Hashes at a small memory cost; `tests/accounts/test_passwords_api.py` checks the real one."""
    from leadline.http.auth.passwords import Passwords

    return Passwords(trio.CapacityLimiter(2), memory_kib=PASSWORD_MEMORY_KIB)


@pytest.fixture
def cheap_backup_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passphrases of backups that this process writes at a small cost."""
    monkeypatch.setattr("leadline.storage.engine.backup_key._N", BACKUP_KEY_COST)


@pytest.fixture(scope="session")
def _initialized() -> Iterator[Path]:
    with initialized() as folder:
        yield folder


@pytest.fixture
def cheap_initdb(_initialized: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New clusters are copies of one that initdb made, by the user that would run initdb."""

    def copy(place: EmbeddedLayout, folder: Path, *, durable: bool) -> list[str]:
        return place.runner.command("cp", "-r", f"{_initialized}/.", folder, death_signal="KILL")

    monkeypatch.setattr(EmbeddedLayout, "initdb", copy)


@pytest.fixture
def empty_dsn(databases: Databases) -> Iterator[str]:
    """A database in which nothing was migrated."""
    dsn = databases.make()
    yield dsn
    databases.drop(dsn)


@pytest.fixture
def template(request: pytest.FixtureRequest) -> str:
    """The name of the database that `dsn` clones, by the test's mark or its kind."""
    mark = request.node.get_closest_marker("template")
    fixture = mark.args[0] if mark else _TEMPLATES.get(kind_of(request.path), "migrated")
    return str(request.getfixturevalue(fixture))


@pytest.fixture
def dsn(databases: Databases, template: str) -> Iterator[str]:
    """A database of this test's own, equal to `template`."""
    dsn = databases.lend(template)
    yield dsn
    databases.give_back(dsn)


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Pool]:
    """Four connections to this test's database; `tx.now` is FROZEN_NOW."""
    async with open_pool(dsn, name="test", size=4, clock=lambda: FROZEN_NOW) as pool:
        yield pool
