"""Screens and static files are compressed for clients that accept it, and equal when unpacked."""

import gzip

import pytest

from tests.support.app.cast import Api


@pytest.mark.parametrize("path", ["/projects/{project}", "/profile", "/static/keys.js"])
async def test_the_unpacked_bytes_equal_the_plain_ones(api: Api, path: str) -> None:
    there = path.format(project=api.project)
    headers = {"Accept": "text/html"}
    plain = await api.ask("editor", "GET", there, headers=headers)
    packed = await api.ask(
        "editor", "GET", there, headers={**headers, "Accept-Encoding": "gzip, br"}
    )
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"
    body = await plain.get_data(as_text=False)
    small = await packed.get_data(as_text=False)
    assert gzip.decompress(small) == body
    assert len(small) < len(body)


async def test_each_encoding_of_a_file_has_its_own_tag(api: Api) -> None:
    plain = await api.ask("editor", "GET", "/static/keys.js")
    packed = await api.ask("editor", "GET", "/static/keys.js", headers={"Accept-Encoding": "gzip"})
    assert plain.headers["ETag"] != packed.headers["ETag"]
    again = {"Accept-Encoding": "gzip", "If-None-Match": packed.headers["ETag"]}
    assert (await api.ask("editor", "GET", "/static/keys.js", headers=again)).status_code == 304
