"""Tokens in the keyring of the system, if the package keyring is installed (`leadline[keyring]`).

A token is stored under the name of its profile and the address of its server, so that another
server never gets it.
"""

from typing import Any, Final

SERVICE: Final = "leadline"


class KeyringFailed(Exception):
    """The keyring refused. The message is its reason."""


def has_keyring() -> bool:
    """Returns whether the package is installed and has found a keyring that it can use."""
    module = _module()
    if module is None:
        return False
    found = module.get_keyring()
    # Packages without a usable keyring have a priority of 0 or less.
    return bool(found.priority > 0)


def put_token(profile: str, url: str, token: str) -> None:
    _call("set_password", f"{profile} {url}", token)


def get_token(profile: str, url: str) -> str:
    """Returns the token, empty if the keyring has none."""
    found = _call("get_password", f"{profile} {url}")
    return str(found) if found else ""


def delete_token(profile: str, url: str) -> None:
    """Deletes the token. It is no error if the keyring has none."""
    if get_token(profile, url):
        _call("delete_password", f"{profile} {url}")


def _module() -> Any:
    # Imported here, since the package is optional and its backends are slow to load.
    try:
        import keyring
    except ImportError:
        return None
    return keyring


def _call(name: str, *given: str) -> Any:
    module = _module()
    if module is None:
        raise KeyringFailed("the package keyring is not installed: pip install 'leadline[keyring]'")
    try:
        return getattr(module, name)(SERVICE, *given)
    # A backend raises errors of the programs that it talks to, besides those of the package.
    except Exception as error:
        raise KeyringFailed(f"the system keyring failed: {type(error).__name__}") from error
