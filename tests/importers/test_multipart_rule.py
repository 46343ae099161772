"""Forms with files: what a browser sends is read as it was, and any other body is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.datastructures import Headers
from werkzeug.sansio.multipart import Data, Epilogue, Event, Field, File, MultipartEncoder, Preamble

from leadline.http.wire.multipart import BadForm, MultipartForm, read_multipart

TYPE = "multipart/form-data; boundary=edge"
PARTS_MOST = 8


def encoded(*parts: tuple[str, str | bytes]) -> bytes:
    """Returns the body of a form. Bytes are a file."""
    encoder = MultipartEncoder(b"edge")
    events: list[Event] = [Preamble(data=b"")]
    for name, value in parts:
        if isinstance(value, bytes):
            events.append(File(name=name, filename="f", headers=Headers()))
        else:
            events.append(Field(name=name, headers=Headers()))
        data = value if isinstance(value, bytes) else value.encode()
        events.append(Data(data=data, more_data=False))
    return b"".join(map(encoder.send_event, [*events, Epilogue(data=b"")]))


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b"]), st.text() | st.binary()), max_size=PARTS_MOST)
)
def test_fields_and_files_are_read_as_they_were_sent(parts: list[tuple[str, str | bytes]]) -> None:
    expected = MultipartForm()
    for name, value in parts:
        if isinstance(value, bytes):
            expected.files.setdefault(name, value)
        else:
            expected.fields.setdefault(name, []).append(value)
    assert read_multipart(encoded(*parts), TYPE, PARTS_MOST) == expected


@given(st.binary(), st.binary())
def test_any_other_body_is_refused(before: bytes, after: bytes) -> None:
    whole = encoded(("a", "x"), ("b", b"y"))
    for body in (before, whole[:-4], before + whole[: len(whole) // 2] + after):
        try:
            read_multipart(body, TYPE, PARTS_MOST)
        except BadForm:
            continue
        assert b"--edge--" in body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--edge\r\n\r\nx\r\n--edge--\r\n",
        b"--edge\r\nContent-Disposition: form-data\r\n\r\nx\r\n--edge--\r\n",
        b'--edge\r\nContent-Disposition: form-data; name="a"\r\n\r\n\xff\r\n--edge--\r\n',
        encoded(*[("a", "x")] * (PARTS_MOST + 1)),
    ],
)
def test_bad_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(BadForm):
        read_multipart(body, TYPE, PARTS_MOST)


@pytest.mark.parametrize(
    "content_type",
    ["multipart/form-data", f"multipart/form-data; boundary={'x' * 71}", "multipart/form-data; b"],
)
def test_a_missing_or_long_boundary_is_refused(content_type: str) -> None:
    with pytest.raises(BadForm):
        read_multipart(encoded(("a", "x")), content_type, PARTS_MOST)
