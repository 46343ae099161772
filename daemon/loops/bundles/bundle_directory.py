"""Bounded reader of a file provider's directory.

A file whose digest is unchanged is not parsed again.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ....storage.bundles.rules.bundle import BYTES_MOST, Bundle, read_bundle
from ....storage.bundles.rules.bundle_yaml import BadText, Text, read_text
from ....storage.bundles.rules.file_provider import FILES_MOST
from ....storage.core.refusal import Refused

_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})


class DirectoryUnreadable(Exception):
    """The directory cannot be read as a whole; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class BundleFile:
    """File with its parsed bundle or an error.

    `digest` is the SHA-256 of at most BYTES_MOST + 1 bytes of it; of no bytes if it is unreadable.
    """

    path: str
    digest: bytes
    text: Text | None = field(default=None, repr=False)
    bundle: Bundle | None = None
    error: str = ""

    def point_at(self, why: Refused) -> str:
        """Returns the text of a refusal, prefixed with its place in the file."""
        return str(why) if self.text is None else f"{self.text.place_of(why.field)}: {why}"


def look_into(directory: Path, before: Mapping[str, BundleFile]) -> list[BundleFile]:
    """Reads the bundle files of a directory in the order of their names. Blocks.

    Hidden files are skipped. Raises: DirectoryUnreadable.
    """
    try:
        names = sorted(
            path.name
            for path in directory.iterdir()
            if path.suffix in _SUFFIXES and not path.name.startswith(".") and not path.is_dir()
        )
    except OSError as error:
        raise DirectoryUnreadable(f"{directory} cannot be read: {error.strerror}") from error
    if len(names) > FILES_MOST:
        raise DirectoryUnreadable(f"{directory} contains more than {FILES_MOST} bundles")
    return [_look_at(directory, name, before.get(name)) for name in names]


def _look_at(directory: Path, name: str, before: BundleFile | None) -> BundleFile:
    try:
        with open(directory / name, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return BundleFile(name, _digest(b""), error="is not a file")
            content = file.read(BYTES_MOST + 1)
    except OSError as error:
        return BundleFile(name, _digest(b""), error=f"cannot be read: {error.strerror}")
    digest = _digest(content)
    if before is not None and before.digest == digest and content:
        return before
    if len(content) > BYTES_MOST:
        return BundleFile(name, digest, error=f"is larger than {BYTES_MOST} bytes")
    return _read(name, digest, content)


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file without blocking: a plain open of a FIFO would wait for its other end."""
    return os.open(path, flags | os.O_NONBLOCK)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _read(name: str, digest: bytes, content: bytes) -> BundleFile:
    try:
        text = read_text(content.decode())
    except UnicodeDecodeError:
        return BundleFile(name, digest, error="is not UTF-8")
    except BadText as why:
        return BundleFile(name, digest, error=str(why))
    try:
        return BundleFile(name, digest, text, read_bundle(text.document))
    except Refused as why:
        return BundleFile(name, digest, error=f"{text.place_of(why.field)}: {why}")
