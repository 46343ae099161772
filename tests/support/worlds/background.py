"""The runner of operations, which performs deletions, bundles and actions on monitors."""

from collections.abc import Callable

import trio

from leadline.daemon.loops.bundles.bundle_applier import BundleApplier
from leadline.daemon.loops.operation_runner import OperationRunner
from leadline.storage.bulk.transactions import BulkContext
from leadline.storage.bundles.transactions.bundle_context import ApplyContext
from leadline.storage.core.instant import Instant
from leadline.storage.engine.keyring import Keyring
from leadline.storage.engine.pools import Pool


def operation_runner(pool: Pool, keyring: Keyring, clock: Callable[[], Instant]) -> OperationRunner:
    ground = ApplyContext(
        keyring=keyring, regions=frozenset({"core", "eu"}), reserved={}, raw_days=30
    )
    applier = BundleApplier(pool, ground, trio.CapacityLimiter(1), lambda: None)
    return OperationRunner(pool, clock, applier, BulkContext(keyring=keyring, raw_days=30))
