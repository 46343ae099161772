"""The delay of a run after its due instant, in SQL."""

from typing import Final

# In milliseconds, of the result `h`. The row of a result can contain it. For others the newest
# window before them is looked up, in a range that is longer than the longest interval of a bench.
LATE_MS: Final = """coalesce(h.after_due_us / 1000.0, extract(epoch from h.ts - (
  select max(r.due_at) from ledger r
  where r.org = h.org and r.monitor = h.monitor and r.due_at <= h.ts
    and r.at > h.ts - interval '1 hour' and r.at <= h.ts + interval '1 minute')) * 1000)"""
