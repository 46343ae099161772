"""Forms with files (multipart/form-data, RFC 7578), as browsers send them."""

from dataclasses import dataclass, field
from typing import Final

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData

_BOUNDARY_LONGEST: Final = 70


class BadForm(ValueError):
    """The body is no form."""


@dataclass(frozen=True, slots=True)
class MultipartForm:
    """Text fields with their values, and files by field. The file is empty if none was chosen."""

    fields: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict, repr=False)


def read_multipart(data: bytes, content_type: str, parts_most: int) -> MultipartForm:
    """Parses a body that is wholly in memory. The first file of a field counts.

    Raises:
        BadForm, also for text that is not UTF-8 and for more parts than `parts_most`.
    """
    boundary = parse_options_header(content_type)[1].get("boundary", "")
    if not 1 <= len(boundary) <= _BOUNDARY_LONGEST or not boundary.isascii():
        raise BadForm
    decoder = MultipartDecoder(boundary.encode(), max_parts=parts_most)
    decoder.receive_data(data)
    decoder.receive_data(None)
    try:
        return _read(decoder)
    except (ValueError, RequestEntityTooLarge) as error:
        raise BadForm from error


def _read(decoder: MultipartDecoder) -> MultipartForm:
    form = MultipartForm()
    part: Field | File | None = None
    pieces: list[bytes] = []
    while not isinstance(event := decoder.next_event(), Epilogue):
        match event:
            case Field() | File():
                part, pieces = event, []
            case Data():
                pieces.append(event.data)
                if not event.more_data and part is not None:
                    _take(form, part, b"".join(pieces))
            case NeedData():
                raise BadForm
    return form


def _take(form: MultipartForm, part: Field | File, value: bytes) -> None:
    # werkzeug passes on a part without a name.
    if not isinstance(part.name, str):
        raise BadForm
    if isinstance(part, File):
        form.files.setdefault(part.name, value)
    else:
        form.fields.setdefault(part.name, []).append(value.decode())
