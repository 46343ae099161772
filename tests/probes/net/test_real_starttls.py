"""STARTTLS with Dovecot, for submission and IMAP."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from leadline.probes.check.result import FailureClass, RunOutcome, message
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.real_servers import HOST, listens, open_folder, running, write_certificate
from tests.support.peers.servers import Prober
from tests.support.processes.ports import free_port

IMAP, SUBMISSION = "/usr/lib/dovecot/imap-login", "/usr/lib/dovecot/submission-login"
DOVECOT = """
base_dir = {folder}/run
state_dir = {folder}/run
log_path = {folder}/dovecot.log
protocols = imap submission
default_internal_user = nobody
default_login_user = nobody
default_internal_group = nogroup
ssl = {ssl}
ssl_cert = <{folder}/server.crt
ssl_key = <{folder}/server.key
auth_mechanisms = plain
mail_location = maildir:{folder}/mail
submission_relay_host = 127.0.0.1
hostname = mail.example
passdb {{
  driver = static
  args = nopassword=y
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    address = 127.0.0.1
    port = {imap}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service submission-login {{
  chroot =
  inet_listener submission {{
    address = 127.0.0.1
    port = {smtp}
  }}
}}
service anvil {{
  chroot =
}}
"""
pytestmark = [pytest.mark.needs("dovecot", IMAP, SUBMISSION, "root")]


@dataclass(frozen=True)
class Mail:
    imap: int
    smtp: int

    def target(self, protocol: str) -> str:
        return f"{HOST}:{getattr(self, protocol)}"


def _mail(folder: Path, ssl: str) -> Iterator[Mail]:
    server = Mail(free_port(), free_port())
    config = folder / "dovecot.conf"
    config.write_text(DOVECOT.format(folder=folder, ssl=ssl, **server.__dict__))
    command = ["dovecot", "-F", "-c", str(config)]

    def ready() -> bool:
        return listens(server.imap) and listens(server.smtp)

    with running(command, folder / "log", ready):
        yield server


@pytest.fixture(scope="module")
def mail(authority: trustme.CA) -> Iterator[Mail]:
    with open_folder() as folder:
        write_certificate(authority, folder, HOST, "mail.example")
        yield from _mail(folder, "yes")


@pytest.fixture(scope="module")
def expired(authority: trustme.CA) -> Iterator[Mail]:
    with open_folder() as folder:
        write_certificate(authority, folder, HOST, expired=True)
        yield from _mail(folder, "yes")


@pytest.fixture(scope="module")
def plain(authority: trustme.CA) -> Iterator[Mail]:
    with open_folder() as folder:
        write_certificate(authority, folder, HOST)
        yield from _mail(folder, "no")


@pytest.mark.parametrize("protocol", ["smtp", "imap"])
async def test_the_certificate_of_dovecot_is_checked_with_starttls(
    prober: Prober, mail: Mail, expired: Mail, plain: Mail, protocol: str
) -> None:
    good = await prober.check("tls", mail.target(protocol), starttls=protocol)
    assert good.outcome is RunOutcome.UP, good
    named = {"starttls": protocol, "server_name": "mail.example"}
    assert (await prober.check("tls", mail.target(protocol), **named)).outcome is RunOutcome.UP
    other = {"starttls": protocol, "server_name": "other.example"}
    for server, settings in ((mail, other), (expired, {"starttls": protocol})):
        result = await prober.check("tls", server.target(protocol), **settings)
        assert result.msg == message(FailureClass.TLS_ERROR, HOST), (protocol, settings, result)
    without = await prober.check("tls", plain.target(protocol), starttls=protocol)
    assert without.msg == message(FailureClass.TLS_ERROR, HOST)


async def test_cancelled_runs_leave_nothing_open(prober: Prober, mail: Mail) -> None:
    for protocol in ("smtp", "imap"):

        async def probe(protocol: str = protocol) -> object:
            return await prober.check("tls", mail.target(protocol), starttls=protocol)

        await leaves_nothing(probe)
