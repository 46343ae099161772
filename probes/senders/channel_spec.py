"""What a channel takes: its settings, which of them are secret, and what is wrong with given ones.

Pure. The API's validation, the console's form and the docs read these, so they cannot disagree.
Every setting is a text. A fault names the setting and repeats nothing of its value.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ..check.target import BadTarget, read_url

VALUE_LONGEST: Final = 2_048
# What stands in answers for a secret that is set; given back, it keeps what is stored.
MASK: Final = "••••"

Config = Mapping[str, str]


class ValueForm(Enum):
    TEXT = "text"
    URL = "url"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSetting:
    """`pattern` holds for the whole value, and `hint` says it to people. `leads` is where secrets
    are sent: with another origin there, they are asked for again."""

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
    """`field` as the API names it: `config.url`."""

    field: str
    message: str


def _no_rule(_config: Config) -> list[SettingFault]:
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSpec:
    """One kind of channel. `rule` holds what a pattern cannot say."""

    type: str
    help: str
    settings: tuple[ChannelSetting, ...]
    rule: Callable[[Config], list[SettingFault]] = _no_rule

    @property
    def secrets(self) -> frozenset[str]:
        return frozenset(setting.name for setting in self.settings if setting.secret)

    def with_defaults(self, config: Config) -> dict[str, str]:
        return {s.name: config.get(s.name) or s.default for s in self.settings}

    def faults(self, config: Config) -> list[SettingFault]:
        """All that is wrong with a whole config; empty where it is good."""
        known = {setting.name for setting in self.settings}
        found = [
            SettingFault(_setting_names(key), "is no setting of this type")
            for key in sorted(set(config) - known)
        ]
        found += [
            fault
            for setting in self.settings
            if (fault := _fault(setting, config.get(setting.name, ""))) is not None
        ]
        return found or self.rule(config)

    def has_moved(self, before: Config, after: Config) -> bool:
        """Whether secrets would go to another scheme, host or port than they were given for."""
        old, new = self.with_defaults(before), self.with_defaults(after)
        return any(
            read_url(old[s.name]).origin != read_url(new[s.name]).origin
            for s in self.settings
            if s.leads and not s.secret
        )


def _setting_names(key: str) -> str:
    """What looks like no name may be a value in the wrong place, and is not repeated."""
    return f"config.{key}" if re.fullmatch(r"[a-z_]{1,40}", key) else "config"


def _fault(setting: ChannelSetting, value: str) -> SettingFault | None:
    field = f"config.{setting.name}"
    if not value:
        return SettingFault(field, "is required") if setting.required else None
    if len(value) > setting.longest:
        return SettingFault(field, f"must be at most {setting.longest} characters")
    if any(c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in value):
        return SettingFault(field, "must not hold control characters")
    if setting.form is ValueForm.URL:
        try:
            read_url(value)
        except BadTarget as fault:
            return SettingFault(field, str(fault))
    elif setting.pattern and not re.fullmatch(setting.pattern, value):
        return SettingFault(field, setting.hint)
    return None
