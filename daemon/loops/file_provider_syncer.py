"""Syncer of file providers: watches their directories and applies their bundles.

A lease allows one process at a time to scan a provider's directory. A file is applied if two scans
found the same content, so that no partially written file is applied. While a file is wrong, its
last applied content stays in force. A file counts as removed after two scans without it. A bundle
that cannot be applied is retried after a minute.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

import trio

from ...storage.accounts.queries.projects import select_organization, select_project
from ...storage.accounts.rows import ProjectRow
from ...storage.accounts.rules.access import CredentialKind, Principal
from ...storage.accounts.tables.projects import select_project_named
from ...storage.bundles.queries import select_files
from ...storage.bundles.rows import FileRow
from ...storage.bundles.rules.bundle import Bundle, empty_bundle
from ...storage.bundles.rules.file_provider import EMPTY_NOW, FileStatus, may_name, wrong
from ...storage.bundles.tables.bundle_files import (
    claim_provider,
    delete_file,
    put_file,
    record_applied,
    record_scan,
    select_left_behind,
)
from ...storage.bundles.transactions.apply_bundle import write_bundle
from ...storage.bundles.transactions.bundle_context import (
    ApplyContext,
    ApplySource,
    entry_context,
)
from ...storage.core.instant import SECOND, Instant
from ...storage.core.refusal import Refused, Unavailable
from ...storage.engine.pools import Pool, Tx
from ...storage.monitors.transactions.write_batch import MonitorWriteBatch
from .bundles.bundle_directory import BundleFile, DirectoryUnreadable, look_into

log = logging.getLogger("leadline.file_provider_syncer")

PAUSE_SECONDS: Final = 5.0
AGAIN_US: Final = 60 * SECOND
_GONE: Final = b""
_OURS: Final = "cannot be applied because of an internal error; see the log"


@dataclass(frozen=True, slots=True)
class FileProviderConfig:
    """Configured provider; `scope` is organization/project, organization/* or empty.

    With `take_over`, its bundles take over objects that people created.
    """

    name: str
    directory: Path
    scope: str
    take_over: bool = False


@dataclass(frozen=True, slots=True)
class _Claims:
    """Objects that the valid files name, by file: (project id, kind, object uid)."""

    of: Mapping[str, frozenset[tuple[UUID, str, str]]]

    def beside(self, path: str, project: UUID) -> frozenset[tuple[str, str]]:
        """Returns the objects of a project that other files name."""
        return frozenset(
            (kind, uid)
            for other, claims in self.of.items()
            if other != path
            for home, kind, uid in claims
            if home == project
        )


class FileProviderSyncer:
    def __init__(
        self,
        pool: Pool,
        process: UUID,
        sources: list[FileProviderConfig],
        ground: ApplyContext,
        reading: trio.CapacityLimiter,
        on_edit: Callable[[], None],
    ) -> None:
        self._pool = pool
        self._process = process
        self._sources = sources
        self._ground = ground
        self._reading = reading
        self._on_edit = on_edit
        # Files of the last scan, by provider and name.
        self._read: dict[str, dict[str, BundleFile]] = {}

    async def pass_once(self) -> int:
        """Scans all providers; returns the number of applied files."""
        return sum([await self._look(source) for source in self._sources])

    async def _look(self, source: FileProviderConfig) -> int:
        async with self._pool.statement("claim_provider") as tx:
            if not await claim_provider(tx, source.name, source.scope, self._process):
                return 0
        applied, error = 0, ""
        try:
            applied = await self._scan(source)
        except DirectoryUnreadable as why:
            error = str(why)
            log.warning("bundles cannot be read", extra={"provider": source.name, "why": error})
        async with self._pool.statement("record_scan") as tx:
            await record_scan(tx, source.name, error)
        return applied

    async def _scan(self, source: FileProviderConfig) -> int:
        before = self._read.get(source.name, {})
        files = await trio.to_thread.run_sync(
            partial(look_into, source.directory, before), limiter=self._reading
        )
        self._read[source.name] = {one.path: one for one in files}
        async with self._pool.transaction("read_bundle_files", read_only=True) as tx:
            known = {row.path: row for row in await select_files(tx, source.name)}
            claims = {one.path: await _claimed(tx, one.bundle) for one in files}
            now = tx.now
        if not files and any(row.generation for row in known.values()):
            raise DirectoryUnreadable(f"{source.directory} {EMPTY_NOW}")
        files, named = _apart(files, claims)
        applied = 0
        for one in files:
            row = known.get(one.path)
            if _is_due(one, row, now):
                applied += await self._take(source, one, row, named)
        for path, row in known.items():
            if path not in claims:
                await self._leave(source, row, named, now)
        return applied

    async def _take(
        self, source: FileProviderConfig, one: BundleFile, before: FileRow | None, named: _Claims
    ) -> bool:
        """Processes one due file; returns whether it was applied."""
        generation = 0 if before is None else before.generation
        status, error = FileStatus.PENDING, ""
        if one.bundle is None:
            status, error = wrong(generation), one.error
        elif before is not None and before.digest == one.digest:
            status, error = await self._apply(source, one, one.bundle, named, generation)
        if status is FileStatus.APPLIED:
            log.info("bundle applied", extra={"provider": source.name, "path": one.path})
            self._on_edit()
            return True
        if error and (before is None or before.last_error != error):
            extra = {"provider": source.name, "path": one.path, "why": error}
            log.warning("bundle rejected", extra=extra)
        async with self._pool.statement("put_bundle_file") as tx:
            await put_file(
                tx,
                source.name,
                one.path,
                named=_names(one, before),
                digest=one.digest,
                status=status,
                error=error,
            )
        return False

    async def _apply(
        self,
        source: FileProviderConfig,
        one: BundleFile,
        bundle: Bundle,
        named: _Claims,
        generation: int,
    ) -> tuple[FileStatus, str]:
        async def work(tx: Tx) -> None:
            together = MonitorWriteBatch(_speaker(source), edits_regional=True)
            home = await _home(tx, source, bundle)
            await self._write(tx, together, source, one.path, home, bundle, named)
            for left in await select_left_behind(tx, source.name, one.path, home.uid):
                await self._empty(tx, together, source, one.path, left, named)
            await record_applied(tx, source.name, one.path, home.uid)
            await together.write_ahead(tx)
            await together.publish(tx)

        try:
            if await self._is_done("apply_file_bundle", source, one.path, work):
                return FileStatus.APPLIED, ""
        except Refused as why:
            return wrong(generation), one.point_at(why)
        return FileStatus.ERROR, _OURS

    async def _is_done(
        self,
        name: str,
        source: FileProviderConfig,
        path: str,
        work: Callable[[Tx], Awaitable[None]],
    ) -> bool:
        """Runs a transaction; returns False after an internal error, so that other files continue.

        Raises: Refused if the content of the bundle or an existing object forbids the change.
        """
        try:
            await self._pool.transact(name, work)
        except (Refused, Unavailable):
            raise
        except Exception:
            extra = {"provider": source.name, "path": path}
            log.exception("bundle could not be applied: internal error", extra=extra)
            return False
        return True

    async def _leave(
        self, source: FileProviderConfig, row: FileRow, named: _Claims, now: Instant
    ) -> None:
        """Handles a missing file: records it in the first scan, and removes it in the second.

        If the objects of the file cannot be released, it stores the error and retries later.
        """
        if row.digest != _GONE:
            await self._record_gone(row, FileStatus.PENDING, "is gone")
            return
        if row.status != FileStatus.PENDING and now - row.scanned_at < AGAIN_US:
            return

        async def work(tx: Tx) -> None:
            together = MonitorWriteBatch(_speaker(source), edits_regional=True)
            for left in await select_left_behind(tx, source.name, row.path, None):
                await self._empty(tx, together, source, row.path, left, named)
            await delete_file(tx, source.name, row.path)
            await together.write_ahead(tx)
            await together.publish(tx)

        try:
            if not await self._is_done("leave_file_bundle", source, row.path, work):
                await self._record_gone(row, FileStatus.ERROR, f"is gone, and {_OURS}")
                return
        except Refused as why:
            await self._record_gone(row, wrong(row.generation), f"is gone, and {why}")
            return
        log.info("bundle file removed", extra={"provider": source.name, "path": row.path})
        self._on_edit()

    async def _record_gone(self, row: FileRow, status: FileStatus, error: str) -> None:
        async with self._pool.statement("put_bundle_file") as tx:
            await put_file(
                tx,
                row.provider,
                row.path,
                named=(row.organization, row.project_slug),
                digest=_GONE,
                status=status,
                error=error,
            )

    async def _empty(
        self,
        tx: Tx,
        together: MonitorWriteBatch,
        source: FileProviderConfig,
        path: str,
        project: UUID,
        named: _Claims,
    ) -> None:
        """Turns the objects that came from the file into orphans."""
        home = await select_project(tx, project)
        if home is None:
            return
        nothing = empty_bundle(str(home.org_uid), str(home.uid))
        await self._write(tx, together, source, path, home, nothing, named)

    async def _write(
        self,
        tx: Tx,
        together: MonitorWriteBatch,
        source: FileProviderConfig,
        path: str,
        home: ProjectRow,
        bundle: Bundle,
        named: _Claims,
    ) -> None:
        terms = await entry_context(tx, home.org, self._ground)
        applied = ApplySource(
            principal=_speaker(source),
            path=path,
            kept=named.beside(path, home.uid),
            take_over=source.take_over,
        )
        await write_bundle(tx, together, home.uid, bundle, applied, terms)


def _speaker(source: FileProviderConfig) -> Principal:
    """Returns the principal of a provider, which has all rights. Its writes are not audited.

    Write access to the directory is the authorization.
    """
    return Principal(
        CredentialKind.SESSION,
        is_global_admin=True,
        label=f"file provider {source.name}",
        provider=source.name,
    )


async def _home(tx: Tx, source: FileProviderConfig, bundle: Bundle) -> ProjectRow:
    """Returns the project of a bundle.

    Raises: Refused if it is unknown or outside the scope.
    """
    home = await select_project_named(tx, bundle.organization, bundle.project)
    if home is None:
        raise Refused("invalid", "project", "is not in this installation")
    organization = await select_organization(tx, home.org_uid)
    assert organization is not None, "the organization contains the project"
    if not may_name(source.scope, organization.slug, home.slug):
        raise Refused("invalid", "project", f"is another than the provider's, {source.scope}")
    return home


async def _claimed(tx: Tx, bundle: Bundle | None) -> frozenset[tuple[UUID, str, str]]:
    """Returns the objects that a bundle names; empty if its project does not exist."""
    if bundle is None:
        return frozenset()
    home = await select_project_named(tx, bundle.organization, bundle.project)
    if home is None:
        return frozenset()
    return frozenset((home.uid, kind, uid) for kind, uid in bundle.named)


def _apart(
    files: Sequence[BundleFile], claims: Mapping[str, frozenset[tuple[UUID, str, str]]]
) -> tuple[list[BundleFile], _Claims]:
    """Rejects each file that names an object of an earlier file in the same project."""
    seen: dict[tuple[UUID, str, str], str] = {}
    found: list[BundleFile] = []
    named: dict[str, frozenset[tuple[UUID, str, str]]] = {}
    for one in files:
        twice = sorted(claims[one.path] & seen.keys())
        if twice:
            _, kind, uid = twice[0]
            why = f"names the {kind} {uid}, as {seen[twice[0]]} does"
            found.append(replace(one, bundle=None, error=why))
            continue
        seen.update(dict.fromkeys(claims[one.path], one.path))
        named[one.path] = claims[one.path]
        found.append(one)
    return found, _Claims(named)


def _names(one: BundleFile, before: FileRow | None) -> tuple[str, str]:
    """Returns organization and project; for an unreadable file, the previous ones."""
    if one.bundle is not None:
        return one.bundle.organization, one.bundle.project
    return ("", "") if before is None else (before.organization, before.project_slug)


def _is_due(one: BundleFile, before: FileRow | None, now: int) -> bool:
    if before is None or before.digest != one.digest:
        return True
    if before.status == FileStatus.APPLIED:
        # A later file can name the same objects, which rejects this one.
        return one.bundle is None
    if before.status == FileStatus.PENDING:
        return True
    return now - before.scanned_at >= AGAIN_US
