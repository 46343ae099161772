"""A route that writes has the permission object that its transaction enforces."""

import importlib
import pkgutil
from types import ModuleType

import leadline.storage
from leadline.http.server.route_table import ROUTES
from leadline.http.wire.route import Route
from leadline.storage.accounts.rules.access import Need, Permission

STATED_BY_A_ROLE = {
    Need.EDITOR,
    Need.PROJECT_ADMIN,
    Need.ORG_ADMIN,
    Need.GLOBAL_ADMIN,
    Need.SESSION,
}


def _modules(package: ModuleType) -> list[ModuleType]:
    names = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [importlib.import_module(name) for _, name, _ in names if ".transactions" in name]


def _enforced() -> set[int]:
    """Returns the identities of the permissions that transactions name."""
    return {
        id(value)
        for module in _modules(leadline.storage)
        for value in vars(module).values()
        if isinstance(value, Permission)
    }


def _is_write(route: Route) -> bool:
    return route.method != "GET" and route.action.need in STATED_BY_A_ROLE


def test_the_permission_of_a_write_is_that_of_its_transaction() -> None:
    enforced = _enforced()
    writes = [route for route in ROUTES if _is_write(route)]
    assert len(writes) > 160
    assert [
        f"{route.method} {route.path}: {route.action}"
        for route in writes
        if id(route.action) not in enforced
    ] == []
