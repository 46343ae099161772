"""No monitor type reaches a forbidden address, and none uses the files or environment of the local
user.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from leadline.probes.check.result import FailureClass
from tests.support.peers.kind_forms import (
    A_LABELS,
    FORMS,
    HOST,
    IDN,
    V6,
    Form,
    Stream,
    classes_of_an_end,
    judged,
    leaving,
    playing,
    run_form,
)
from tests.support.peers.servers import Names, Prober

# Hosts and addresses.


@pytest.mark.parametrize("host", [f"[{V6}]", IDN])
async def test_every_type_accepts_every_spelling_of_a_host(
    prober: Prober, names: Names, authority: trustme.CA, host: str
) -> None:
    names.records[A_LABELS, "A"] = [[HOST]]
    wrong: list[str] = []
    for form in FORMS:
        async with playing(form, leaving, authority, HOST if host == IDN else V6) as port:
            wrong += await judged(prober, form, port, classes_of_an_end(form), host)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[::a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[2001::5601:5601]",
        "[fe80::5efe:a9fe:a9fe]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "metadata.example",
        "both.example",
    ],
)
async def test_no_type_reaches_metadata_addresses(prober: Prober, names: Names, host: str) -> None:
    names.records["metadata.example", "A"] = [["169.254.169.254"]]
    names.records["metadata.example", "AAAA"] = [["fd00:ec2::254"]]
    names.records["both.example", "A"] = [["100.100.100.200", "168.63.129.16"]]
    wrong: list[str] = []
    with watched() as seen:
        for form in FORMS:
            wrong += await judged(prober, form, 80, {FailureClass.TARGET_BLOCKED}, host)
    assert not wrong, "\n".join(wrong)
    assert seen.connected <= {(HOST, names.port)}


async def test_the_connected_address_is_the_checked_one(
    prober: Prober, names: Names, authority: trustme.CA
) -> None:
    """A nameserver that changes its answer between two queries gains no access."""
    names.ttl = 0
    for form in FORMS:
        names.records["turns.example", "A"] = [[HOST], ["169.254.169.254"]]
        async with playing(form, leaving, authority) as port:
            with watched() as seen:
                await run_form(prober, form, port, "turns.example")
        assert (HOST, port) in seen.connected, form
        assert seen.connected <= {(HOST, names.port), (HOST, port)}, form


async def test_files_and_environment_of_the_user_are_ignored(
    prober: Prober,
    authority: trustme.CA,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted = "pl4nted-5ecret"
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "all_proxy", "ws_proxy", "grpc_proxy"):
        for spelled in (name, name.upper()):
            monkeypatch.setenv(spelled, f"http://{planted}:{planted}@{HOST}:9")
    for name in ("PGPASSWORD", "PGUSER", "PGDATABASE", "PGOPTIONS", "MYSQL_PWD", "REDISCLI_AUTH"):
        monkeypatch.setenv(name, planted)
    for name in ("PGHOST", "PGHOSTADDR", "MYSQL_HOST"):
        monkeypatch.setenv(name, "192.0.2.1")
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    (tmp_path / ".ssh").mkdir()
    for name in (".netrc", ".pgpass", ".my.cnf", ".ssh/config", ".ssh/id_rsa", ".ssh/known_hosts"):
        (tmp_path / name).write_text(f"{HOST} {planted}\n")
        (tmp_path / name).chmod(0o600)
    heard: list[bytes] = []

    async def hearing(_form: Form, stream: Stream) -> None:
        with trio.move_on_after(0.2):
            while piece := await stream.receive_some():
                heard.append(bytes(piece))
        await stream.aclose()

    for form in FORMS:
        async with playing(form, hearing, authority) as port:
            with watched() as seen:
                await run_form(prober, form, port)
        assert seen.connected == {(HOST, port)}, form
        assert not [path for path in seen.opened if path.startswith(str(tmp_path))], form
        assert not seen.looked_up, form
    assert heard
    assert planted.encode() not in b"".join(heard)


# Helpers.


@dataclass
class Watched:
    """The files, connections and lookups of this process, recorded by an audit hook."""

    opened: set[str] = field(default_factory=set)
    connected: set[tuple[str, int]] = field(default_factory=set)
    looked_up: bool = False


_watching: list[Watched] = []
_hooked: list[bool] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    for seen in _watching:
        if event == "open" and isinstance(arguments[0], str):
            seen.opened.add(arguments[0])
        elif event == "socket.connect" and isinstance(arguments[1], tuple):
            seen.connected.add(arguments[1][:2])
        elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
            seen.looked_up = True


@contextmanager
def watched() -> Iterator[Watched]:
    # An audit hook cannot be removed; an inactive one costs little.
    if not _hooked:
        sys.addaudithook(_note)
        _hooked.append(True)
    seen = Watched()
    _watching.append(seen)
    try:
        yield seen
    finally:
        _watching.remove(seen)
