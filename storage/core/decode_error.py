"""What a decoder says of a document that is not of its shape, as a field and what is wrong with it.

What was given is not repeated: it may have been meant for another field.
"""


def field_fault(text: str) -> tuple[str, str]:
    """A decoder's message (msgspec's) with the field in front: `interval_seconds`, `expected int,
    got str`. The field is empty where the whole is meant."""
    said, _, place = text.partition(" - at `")
    said = said.replace("`", "")
    field = place.rstrip("`").removeprefix("$").lstrip(".")
    missing, unknown = "Object missing required field ", "Object contains unknown field "
    if said.startswith(missing):
        return f"{field}.{said.removeprefix(missing)}".lstrip("."), "is required"
    if said.startswith(unknown):
        return f"{field}.{said.removeprefix(unknown)}".lstrip("."), "is not known here"
    if said.startswith("Invalid enum value "):
        said = "is none of the values that are known"
    return field, said[:1].lower() + said[1:]
