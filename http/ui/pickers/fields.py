"""Type-ahead field with several choices: its values for the macros of `picker.html`.

The choices are hidden fields. The text is a separate field that the Add button turns into a choice;
any other button of the form does so too, so that a typed name is never lost.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# Prefixes of the buttons `act`, and of the name of the text field.
ADD: Final = "add."
DROP: Final = "drop."


@dataclass(frozen=True, slots=True)
class PickerOption:
    """Option of a list.

    `value` is the text that names the object: its name, or its slug if another object has the same
    name. `key` is the submitted value of the choice, and `text` its label.
    """

    value: str
    label: str
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class PickerChoice:
    key: str
    text: str


@dataclass(frozen=True, slots=True)
class PickerField:
    """`path` is the address of the options. With `free`, any text is a choice."""

    name: str
    path: str
    chosen: Sequence[PickerChoice]
    options: Sequence[PickerOption]
    text: str = ""
    free: bool = False

    @property
    def is_used(self) -> bool:
        return bool(self.chosen or self.text)

    @property
    def is_needed(self) -> bool:
        """Returns whether the field can be filled, or is."""
        return self.is_used or bool(self.options)


def is_pick(act: str) -> bool:
    """Returns whether a button only changes the choices of a picker."""
    return act.startswith((ADD, DROP))


def dropped(form: Mapping[str, list[str]], act: str, names: Iterable[str]) -> dict[str, list[str]]:
    """Returns the form without the choice whose remove button was pressed."""
    found = dict(form)
    for name in names:
        key = act.removeprefix(f"{DROP}{name}.")
        if key != act:
            found[name] = [value for value in form.get(name, ()) if value != key]
    return found
