"""Conversion of a decoder's error to a field and a message.

The input is not repeated, since it may have been meant for another field.
"""


def field_fault(text: str) -> tuple[str, str]:
    """Splits a message of msgspec: `interval_seconds` and `expected int, got str`.

    The field is empty if the error concerns the whole document.
    """
    said, _, place = text.partition(" - at `")
    said = said.replace("`", "")
    field = place.rstrip("`").removeprefix("$").lstrip(".")
    missing, unknown = "Object missing required field ", "Object contains unknown field "
    if said.startswith(missing):
        return f"{field}.{said.removeprefix(missing)}".lstrip("."), "is required"
    if said.startswith(unknown):
        return f"{field}.{said.removeprefix(unknown)}".lstrip("."), "is not known here"
    if said.startswith("Invalid enum value "):
        said = "is not one of the known values"
    return field, said[:1].lower() + said[1:]
