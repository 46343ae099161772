"""The file of a backup: a tar archive with the dump, the encrypted key, and a manifest.

Invariants:
- A file with the final name is complete: it is written under another name, synced, then linked, or
  renamed on a file system without hard links. There, a crash can leave an empty file.
- No file is overwritten, and only its owner can read it.
- The sizes and SHA-256 sums of the manifest cover every other part.
"""

import hashlib
import os
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

FORMAT: Final = 1
DUMP: Final = "database.dump"
KEY: Final = "encryption-key.json"
MANIFEST: Final = "manifest.json"
# Bounds of the parts that are read into memory: a manifest has a line for each table.
MANIFEST_BYTES: Final = 16 << 20
KEY_BYTES: Final = 64 << 10
CHUNK_BYTES: Final = 256 << 10
_MODE: Final = 0o600


class BadBackup(Exception):
    """The file is no usable backup. The message names the file and the fault."""


class Part(msgspec.Struct, frozen=True):
    bytes: int
    sha256: str


class SchemaVersion(msgspec.Struct, frozen=True):
    """The newest migration that the database had."""

    version: int
    name: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`tables` has the rows of each table and partition, `objects` the number of each kind of
    object; both are counted in the snapshot of the dump. `key` is included, excluded or absent.
    `server_major` and `client_major` are versions of PostgreSQL."""

    format: int
    product_version: str
    schema: SchemaVersion
    server_major: int
    client_major: int
    created_at: str
    key: str
    tables: dict[str, int]
    objects: dict[str, int]
    parts: dict[str, Part]

    @property
    def rows(self) -> int:
        return sum(self.tables.values())


class BackupWriter:
    """Writes the parts of a backup one after the other. The size of a part may be unknown."""

    def __init__(self, file: BinaryIO) -> None:
        self.parts: dict[str, Part] = {}
        self._file = file
        self._begin = 0
        self._size = 0
        self._sum = hashlib.sha256()

    def begin_part(self) -> None:
        """Reserves the header of a part; `end_part` fills it."""
        self._begin = self._file.tell()
        self._size = 0
        self._sum = hashlib.sha256()
        self._file.write(bytes(tarfile.BLOCKSIZE))

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._sum.update(data)
        self._size += len(data)

    def end_part(self, name: str) -> Part:
        self._file.write(bytes(-self._size % tarfile.BLOCKSIZE))
        header = tarfile.TarInfo(name)
        header.size = self._size
        header.mode = _MODE
        header.mtime = int(time.time())
        end = self._file.tell()
        self._file.seek(self._begin)
        # In this format a header has one block for every size.
        self._file.write(header.tobuf(tarfile.GNU_FORMAT))
        self._file.seek(end)
        part = self.parts[name] = Part(self._size, self._sum.hexdigest())
        return part

    def write_part(self, name: str, data: bytes) -> None:
        self.begin_part()
        self.write(data)
        self.end_part(name)

    def finish(self, manifest: Manifest) -> None:
        self.write_part(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def new_backup_file(path: Path) -> Iterator[BackupWriter]:
    """Writes a new file, and gives it its name at the end. An error leaves no file.

    Raises BadBackup if the name is taken, and OSError.
    """
    refuse_taken(path)
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, _MODE)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield BackupWriter(file)
        _publish(partial, path)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
    _sync_folder(path.parent)


def rename_backup(path: Path, name: Path) -> None:
    """Gives a complete file another name in its folder. Raises BadBackup if the name is taken."""
    refuse_taken(name)
    _publish(path, name)
    with suppress(FileNotFoundError):
        path.unlink()
    _sync_folder(name.parent)


def refuse_taken(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise BadBackup(f"{path} exists: a backup overwrites no file, choose another name")


def read_manifest(path: Path) -> Manifest:
    """Returns the manifest of a file whose parts are all there. Raises BadBackup, OSError."""
    with _archive(path) as archive:
        manifest = _decoded(path, _read_small(archive, path, MANIFEST, MANIFEST_BYTES))
        for name, part in manifest.parts.items():
            if _member(archive, path, name).size != part.bytes:
                raise BadBackup(f"{path} is damaged: {name} has not the size of the manifest")
    if DUMP not in manifest.parts or (KEY in manifest.parts) != (manifest.key == "included"):
        raise BadBackup(f"{path} is damaged: the manifest names other parts than a backup has")
    return manifest


def read_key_part(path: Path, manifest: Manifest) -> bytes:
    with _archive(path) as archive:
        data = _read_small(archive, path, KEY, KEY_BYTES)
    if hashlib.sha256(data).hexdigest() != manifest.parts[KEY].sha256:
        raise BadBackup(f"{path} is damaged: {KEY} has not the SHA-256 sum of the manifest")
    return data


def read_dump(path: Path) -> Iterator[bytes]:
    """Yields the dump piece by piece."""
    with _archive(path) as archive:
        file = archive.extractfile(_member(archive, path, DUMP))
        assert file is not None, "a regular file"
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def check_dump(path: Path, manifest: Manifest) -> None:
    """Raises BadBackup if the dump differs from the manifest."""
    computed = hashlib.sha256()
    for chunk in read_dump(path):
        computed.update(chunk)
    if computed.hexdigest() != manifest.parts[DUMP].sha256:
        raise BadBackup(f"{path} is damaged: {DUMP} has not the SHA-256 sum of the manifest")


def _decoded(path: Path, data: bytes) -> Manifest:
    try:
        found = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        number = msgspec.json.decode(found.get("format", b"0"), type=int)
        if number > FORMAT:
            raise BadBackup(
                f"{path} has format {number}, and this leadline reads formats up to {FORMAT}:"
                " install the version that made it, or a newer one"
            )
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError as error:
        raise BadBackup(f"{path} is damaged: {MANIFEST}: {error}") from error


@contextmanager
def _archive(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(path, "r:") as archive:
            yield archive
    except tarfile.TarError as error:
        raise BadBackup(f"{path} is not a backup of leadline, or is damaged: {error}") from error


def _member(archive: tarfile.TarFile, path: Path, name: str) -> tarfile.TarInfo:
    found = [member for member in archive.getmembers() if member.name == name]
    if len(found) != 1 or not found[0].isreg():
        raise BadBackup(f"{path} is not a backup of leadline, or is damaged: it has no {name}")
    return found[0]


def _read_small(archive: tarfile.TarFile, path: Path, name: str, most: int) -> bytes:
    member = _member(archive, path, name)
    if member.size > most:
        raise BadBackup(f"{path} is damaged: {name} has more than {most} bytes")
    file = archive.extractfile(member)
    assert file is not None, "a regular file"
    return file.read()


def _publish(partial: Path, path: Path) -> None:
    try:
        # Unlike a rename, a link fails if the name is taken.
        os.link(partial, path)
    except FileExistsError:
        refuse_taken(path)
        raise
    except OSError:
        # A file system without hard links: an empty file reserves the name, and a rename replaces
        # it. A crash between the two leaves the empty file.
        _reserve(path)
        try:
            partial.rename(path)
        except OSError:
            path.unlink()
            raise


def _reserve(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE))
    except FileExistsError:
        refuse_taken(path)
        raise


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
