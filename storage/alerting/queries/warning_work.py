"""Kinds of warnings that any monitor asks for or has."""

from typing import Final

import msgspec

from ...engine.pools import Tx

# `exists` stops at the first row, and partial indexes contain only the monitors with a threshold.
_WORK: Final = """
select exists (select from monitors where slow_above_ms > 0)
    or exists (select from slow_warnings) as slow,
  exists (select from monitors where warn_certificate_days > 0)
    or exists (select from certificate_warnings) as certificates
"""


class WarningWork(msgspec.Struct, frozen=True):
    slow: bool
    certificates: bool


async def select_warning_work(tx: Tx) -> WarningWork:
    """Returns which warnings can begin or end; no monitor concerns the others."""
    work = await tx.one(WarningWork, _WORK)
    assert work is not None, "the statement always returns a row"
    return work
