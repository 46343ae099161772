"""Probes reach out; storage owns the truth (rules say how it may change, tables hold it, views
show it, transactions change it); http lets people ask; daemon keeps it all running."""

import sys
from typing import cast

# httpx then imports no command line of its own, which needs rich, Pygments and 6 MiB of memory in
# each process. None makes the import fail, as if those packages were not installed.
cast(dict[str, object], sys.modules).setdefault("httpx._main", None)
