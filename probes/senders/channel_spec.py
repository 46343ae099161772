"""Spec of a channel: its settings, the secret ones among them, and their validation.

Pure. The API validation, the console form and the documentation use the same specs, so that they
agree. Every setting is a string. A fault names the setting and repeats no part of its value.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from ..check.target import BadTarget, read_url
from .message import LINES_MOST
from .message_template import FIELDS_SAID, TEXT_TEMPLATE, TITLE_TEMPLATE, template_fault

VALUE_LONGEST: Final = 2_048
# Placeholder for a stored secret in responses. A request that contains it keeps the secret.
MASK: Final = "••••"
# A secret setting with this suffix names a secret of the project that has the value.
REFERENCE_SUFFIX: Final = "_ref"
_SECRET_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")

Config = Mapping[str, str]


class ValueForm(Enum):
    """A TITLE and a LINES value are templates of a message; only the latter has several lines."""

    TEXT = "text"
    URL = "url"
    TITLE = "title"
    LINES = "lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSetting:
    """One setting.

    `pattern` must match the whole value, and `hint` is the message if it does not. `leads` marks
    the address that secrets are sent to. A change of its origin requires them again.
    """

    name: str
    help: str
    form: ValueForm = ValueForm.TEXT
    required: bool = False
    secret: bool = False
    leads: bool = False
    default: str = ""
    pattern: str = ""
    hint: str = "cannot be read"
    longest: int = VALUE_LONGEST


@dataclass(frozen=True, slots=True)
class SettingFault:
    """Fault of a setting, by its API name (`config.url`)."""

    field: str
    message: str


def _no_rule(_config: Config) -> list[SettingFault]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSpec:
    """Spec of one channel type. `rule` validates conditions that a pattern cannot express.

    With `takes_references`, a project secret can have the value of a secret setting.
    """

    type: str
    help: str
    settings: tuple[ChannelSetting, ...]
    rule: Callable[[Config], list[SettingFault]] = _no_rule
    takes_references: bool = True

    @property
    def secrets(self) -> frozenset[str]:
        return frozenset(setting.name for setting in self.settings if setting.secret)

    @property
    def references(self) -> dict[str, str]:
        """Returns the names of the settings that refer to secrets, with their settings."""
        secrets = sorted(self.secrets) if self.takes_references else ()
        return {f"{name}{REFERENCE_SUFFIX}": name for name in secrets}

    def with_defaults(self, config: Config) -> dict[str, str]:
        return {s.name: config.get(s.name) or s.default for s in self.settings}

    def faults(self, config: Config) -> list[SettingFault]:
        """Returns the faults of a complete config, or [] if it is valid.

        The rule is evaluated only if no setting has a fault, and no setting is a reference: those
        are checked with their values.
        """
        referred = {key: config[key] for key in self.references if config.get(key)}
        if referred:
            return self._faults_with(config, referred)
        known = {setting.name for setting in self.settings}
        found = [
            SettingFault(_setting_names(key), "is not a setting of this type")
            for key in sorted(set(config) - known)
        ]
        found += [
            fault
            for setting in self.settings
            if (fault := _fault(setting, config.get(setting.name, ""))) is not None
        ]
        return found or self.rule(config)

    def _faults_with(self, config: Config, referred: Config) -> list[SettingFault]:
        """Returns the faults of a config with references, whose values are unknown."""
        for key, name in referred.items():
            if config.get(self.references[key]):
                return [SettingFault(f"config.{key}", "must not be given with the value")]
            if not _SECRET_NAME.fullmatch(name):
                return [SettingFault(f"config.{key}", "must be the name of a project secret")]
        hidden = {self.references[key] for key in referred}
        plain = {key: value for key, value in config.items() if key not in self.references}
        shown = tuple(
            replace(one, required=False) if one.name in hidden else one for one in self.settings
        )
        return replace(self, settings=shown, rule=_no_rule).faults(plain)

    def has_moved(self, before: Config, after: Config) -> bool:
        """Returns whether the secrets would be sent to another scheme, host or port."""
        old, new = self.with_defaults(before), self.with_defaults(after)
        return any(
            read_url(old[s.name]).origin != read_url(new[s.name]).origin
            for s in self.settings
            if s.leads and not s.secret
        )


# Of every type that sends text. `deliver` applies them before a sender formats the message.
TEMPLATES: Final = (
    ChannelSetting(
        name=TITLE_TEMPLATE,
        help=f"A title of your own, with {FIELDS_SAID}",
        form=ValueForm.TITLE,
    ),
    ChannelSetting(
        name=TEXT_TEMPLATE,
        help="A text of your own with the same fields; a line whose fields are empty is left out",
        form=ValueForm.LINES,
    ),
)


def template_faults(config: Config) -> list[SettingFault]:
    """Returns the faults of the templates alone."""
    found = (_fault(setting, config.get(setting.name, "")) for setting in TEMPLATES)
    return [fault for fault in found if fault is not None]


def with_templates(spec: ChannelSpec) -> ChannelSpec:
    return replace(spec, settings=(*spec.settings, *TEMPLATES))


def _setting_names(key: str) -> str:
    """Returns the field of an unknown key. A key that is not a name may be a misplaced value."""
    return f"config.{key}" if re.fullmatch(r"[a-z_]{1,40}", key) else "config"


def _fault(setting: ChannelSetting, value: str) -> SettingFault | None:
    field = f"config.{setting.name}"
    if not value:
        return SettingFault(field, "is required") if setting.required else None
    if len(value) > setting.longest:
        return SettingFault(field, f"must be at most {setting.longest} characters")
    shown = value.replace("\n", "") if setting.form is ValueForm.LINES else value
    if any(c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in shown):
        return SettingFault(field, "must not contain control characters")
    if setting.form in (ValueForm.TITLE, ValueForm.LINES):
        wrong = template_fault(value, LINES_MOST if setting.form is ValueForm.LINES else 1)
        return None if wrong is None else SettingFault(field, wrong)
    if setting.form is ValueForm.URL:
        try:
            read_url(value)
        except BadTarget as fault:
            return SettingFault(field, str(fault))
    elif setting.pattern and not re.fullmatch(setting.pattern, value):
        return SettingFault(field, setting.hint)
    return None
