"""Loading of the configuration: one frozen value, read once at the start.

The sources are a file, the environment and systemd credentials. An unknown key stops the start, and
all faults are reported together. The environment overrides the credentials, which override the
file. A systemd credential keeps a secret out of both the file and the environment.
"""

import os
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from .config_schema import Settings

ENV_PREFIX = "LEADLINE_"
DEFAULT_PATH = Path("/etc/leadline/leadline.toml")
MAX_FILE_BYTES = 1 << 20
MAX_CREDENTIAL_BYTES = 64 << 10

# Keys that can be files of the same name in $CREDENTIALS_DIRECTORY.
SECRETS = (
    "database.dsn",
    "database.listen_dsn",
    "security.encryption_key",
    "security.admin_password",
    "mail.smtp_password",
    "oidc.client_secret",
    "pull.token",
)


class BadConfig(Exception):
    """The configuration has faults: one line each, with the key."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


def load(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """Reads the configuration. Raises: BadConfig with all faults."""
    faults: list[str] = []
    document = _read_file(_chosen_file(path, environ), faults)
    is_file_read = not faults
    _overlay_credentials(document, environ, faults)
    _overlay_environment(document, environ, faults)
    found = _Reading(faults)
    settings = msgspec.convert(found.section("", document, Settings), Settings, strict=False)
    if is_file_read:
        faults += settings.faults(found.unread)
    if faults:
        raise BadConfig(faults)
    return settings


def default_data_dir() -> Path:
    """Returns the default data directory: the systemd state directory, or the platform's."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(given) if given else Path(platformdirs.user_state_dir("leadline"))


def _chosen_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    if path is not None:
        return path
    if environ.get("LEADLINE_CONFIG"):
        return Path(environ["LEADLINE_CONFIG"])
    return DEFAULT_PATH if DEFAULT_PATH.exists() else None


def _read_file(path: Path | None, faults: list[str]) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            faults.append(f"{path}: larger than {MAX_FILE_BYTES} bytes")
            return {}
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        faults.append(f"{path}: {error.strerror}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        faults.append(f"{path}: {error}")
    return {}


def _overlay_credentials(
    document: dict[str, Any], environ: Mapping[str, str], faults: list[str]
) -> None:
    directory = environ.get("CREDENTIALS_DIRECTORY")
    if not directory:
        return
    for key in SECRETS:
        file = Path(directory) / key
        try:
            with file.open("rb") as opened:
                data = opened.read(MAX_CREDENTIAL_BYTES + 1)
            value = data.decode().strip()
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            faults.append(f"{key}: the credential cannot be read: {error}")
            continue
        if len(data) > MAX_CREDENTIAL_BYTES:
            faults.append(f"{key}: the credential is larger than {MAX_CREDENTIAL_BYTES} bytes")
            continue
        _put(document, key.split("."), value, faults)


def _overlay_environment(
    document: dict[str, Any], environ: Mapping[str, str], faults: list[str]
) -> None:
    for name, value in sorted(environ.items()):
        if name == "LEADLINE_DATA_DIR":
            document["data_dir"] = value
        elif name.startswith(ENV_PREFIX) and "__" in name:
            path = name[len(ENV_PREFIX) :].lower().split("__")
            target = _type_at(path)
            _put(document, path, _parsed(value, target), faults)


def _parsed(value: str, target: Any) -> Any:
    """Parses lists and tables as TOML or as comma-separated text; returns other text as is."""
    if typing.get_origin(target) not in (list, tuple, dict):
        return value
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return [part.strip() for part in value.split(",") if part.strip()]


def _put(document: dict[str, Any], path: list[str], value: Any, faults: list[str]) -> None:
    place = document
    for part in path[:-1]:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            faults.append(f"{'.'.join(path)}: {part} is not a section")
            return
    place[path[-1]] = value


def _type_at(path: list[str]) -> Any:
    current: Any = Settings
    for part in path:
        if typing.get_origin(current) is dict:
            current = typing.get_args(current)[1]
            continue
        fields = _fields(current)
        if part not in fields:
            return None
        current = fields[part].type
    return current


def _fields(section: Any) -> dict[str, msgspec.structs.FieldInfo]:
    if isinstance(section, type) and issubclass(section, msgspec.Struct):
        return {field.encode_name: field for field in msgspec.structs.fields(section)}
    return {}


class _Reading:
    """Comparison of a document with its types, which finds all faults.

    `unread` are the keys whose values do not fit their type.
    """

    def __init__(self, faults: list[str]) -> None:
        self._faults = faults
        self.unread: set[str] = set()

    def section(self, key: str, value: Any, section: Any) -> dict[str, Any]:
        """Returns the values of a section that fit their types.

        An unread value is left out, so its default applies. A required value, which is a text,
        becomes empty. So the faults that only whole sections show can be found too.
        """
        if not isinstance(value, dict):
            self._wrong(key, "must be a section")
            value = {}
        fields = _fields(section)
        found: dict[str, Any] = {}
        for name, item in value.items():
            path = f"{key}.{name}" if key else name
            if name in fields:
                self._read(found, name, path, item, fields[name].type)
            else:
                self._faults.append(f"{path}: no such key")
        for name, field in fields.items():
            if field.required and name not in found:
                path = f"{key}.{name}"
                if name not in value and key not in self.unread:
                    self._wrong(path, "is required")
                found[name] = ""
        return found

    def _read(self, found: dict[str, Any], name: str, key: str, item: Any, target: Any) -> None:
        inner = _section_within(target)
        if _fields(target):
            found[name] = self.section(key, item, target)
        elif inner is not None and isinstance(item, list):
            found[name] = [self.section(f"{key}[{n}]", one, inner) for n, one in enumerate(item)]
        elif inner is not None and isinstance(item, dict):
            found[name] = {one: self.section(f"{key}.{one}", item[one], inner) for one in item}
        elif isinstance(target, types.UnionType) and item == "":
            found[name] = item
        else:
            try:
                msgspec.convert(item, target, strict=False)
                found[name] = item
            except msgspec.ValidationError as error:
                self._wrong(key, str(error).replace(" - at `$", f" - at `{key}"))

    def _wrong(self, key: str, fault: str) -> None:
        self._faults.append(f"{key}: {fault}")
        self.unread.add(key)


def _section_within(target: Any) -> Any:
    """Returns the type of the sections in a list or a mapping of sections, otherwise None."""
    inner = {tuple: 0, dict: 1}.get(typing.get_origin(target))
    if inner is None:
        return None
    found = typing.get_args(target)[inner]
    return found if _fields(found) else None
