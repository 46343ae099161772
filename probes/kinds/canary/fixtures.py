"""Files that a workflow can post: small, valid, and the same in every build.

Pure. They are generated rather than packaged, so that no installation lacks one.
"""

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

# Content of the text files. It explains the file to a person who finds it.
NOTE: Final = "Made by a monitor to see whether files like this one are still processed."

_WAV_RATE_HZ: Final = 8_000


@dataclass(frozen=True, slots=True)
class Fixture:
    media_type: str
    content: bytes = field(repr=False)


def _png() -> bytes:
    """Returns an image of eight by eight grey pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checked = name + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    # Stored, not compressed, so that the bytes do not depend on the version of zlib.
    rows = zlib.compress(b"".join(b"\0" + b"\x80" * 8 for _ in range(8)), 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def _wav() -> bytes:
    """Returns a quarter of a second of silence, 16 bit, one channel."""
    samples = bytes(2 * (_WAV_RATE_HZ // 4))
    form = struct.pack("<HHIIHH", 1, 1, _WAV_RATE_HZ, 2 * _WAV_RATE_HZ, 2, 16)
    inner = b"WAVEfmt " + struct.pack("<I", len(form)) + form
    inner += b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(inner)) + inner


def _pdf() -> bytes:
    """Returns one page with a line of text and an exact cross-reference table."""
    said = f"BT /F 12 Tf 36 720 Td ({NOTE}) Tj ET".encode()
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(said), said),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    text = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(text))
        text += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % at for at in offsets)
    size = len(objects) + 1
    tail = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, len(text))
    return text + b"xref\n0 %d\n" % size + table + tail


FIXTURES: Final[Mapping[str, Fixture]] = MappingProxyType(
    {
        "text": Fixture("text/plain; charset=utf-8", f"{NOTE}\n".encode()),
        "json": Fixture("application/json", json.dumps({"note": NOTE}).encode()),
        "csv": Fixture("text/csv; charset=utf-8", f'id,note\r\n1,"{NOTE}"\r\n'.encode()),
        "png": Fixture("image/png", _png()),
        "wav": Fixture("audio/wav", _wav()),
        "pdf": Fixture("application/pdf", _pdf()),
    }
)
