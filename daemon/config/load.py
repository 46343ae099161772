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
    _overlay_credentials(document, environ, faults)
    _overlay_environment(document, environ, faults)
    _check_section("", document, Settings, faults)
    if faults:
        raise BadConfig(faults)
    settings = msgspec.convert(document, Settings, strict=False)
    faults = settings.faults()
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
            value = file.read_text(encoding="utf-8")[:MAX_CREDENTIAL_BYTES].strip()
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            faults.append(f"{key}: the credential cannot be read: {error}")
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


def _check_section(prefix: str, value: Any, section: type, faults: list[str]) -> None:
    """Compares the document with its type recursively, so that it finds all faults."""
    if not isinstance(value, dict):
        faults.append(f"{prefix.rstrip('.')}: must be a section")
        return
    fields = _fields(section)
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            faults.append(f"{prefix}{key}: no such key")
        elif _fields(field.type):
            _check_section(f"{prefix}{key}.", item, field.type, faults)
        else:
            _check_value(f"{prefix}{key}", item, field.type, faults)


def _check_value(key: str, item: Any, target: Any, faults: list[str]) -> None:
    if isinstance(target, types.UnionType) and item == "":
        return
    try:
        msgspec.convert(item, target, strict=False)
    except msgspec.ValidationError as error:
        faults.append(f"{key}: {str(error).replace(' - at `$', ' - at `' + key)}")
