"""Servers of this machine's packages, each started for a test on its own ports, and stopped."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

HOST = "127.0.0.1"
# Only a server that hangs takes so long. RabbitMQ needs a minute where seven programs share a core.
READY_SECONDS = 300


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), timeout=5):
        return True
    return False


@contextmanager
def open_folder() -> Iterator[Path]:
    """Yields a short path that other users can access, because these servers refuse to run
    as root.
    """
    folder = Path(tempfile.mkdtemp(prefix="leadline-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(
    command: Sequence[str], log: Path, ready: Callable[[], bool], **popen: object
) -> Iterator["subprocess.Popen[bytes]"]:
    """Yields the process of a server that is ready; it has ended after the block."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, **popen)  # type: ignore[call-overload]
    try:
        deadline = time.monotonic() + READY_SECONDS
        while not ready():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.01)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def pems(certificate: trustme.LeafCert) -> tuple[str, str]:
    """Returns the chain and the key of a certificate."""
    chain = "".join(blob.bytes().decode() for blob in certificate.cert_chain_pems)
    return chain, certificate.private_key_pem.bytes().decode()


def write_certificate(
    authority: trustme.CA, folder: Path, *names: str, expired: bool = False
) -> tuple[Path, Path]:
    """Returns the files of a certificate for `names` and of its key."""
    ends = datetime.now(UTC) - timedelta(days=1) if expired else None
    certificate = authority.issue_cert(*names, not_after=ends)
    chain, key = folder / "server.crt", folder / "server.key"
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(str(key))
    key.chmod(0o600)
    return chain, key
