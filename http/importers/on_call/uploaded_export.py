"""Conversion of an uploaded export of on-call."""

from ..uploaded_file import with_files
from . import read_on_call
from .document import OnCallImport


def read_on_call_upload(tool: str, file: bytes) -> OnCallImport:
    """Converts a file.

    Raises:
        CannotImport.
    """
    return with_files(file, b"", lambda path, _: read_on_call(tool, path))
