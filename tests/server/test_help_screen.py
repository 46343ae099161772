"""The help of the console shows the whole glossary."""

from leadline.http.ui.shell.help_screen import GLOSSARY, terms
from tests.support.app.cast import Api

from ..services.test_services_screen import seen


async def test_every_term_of_the_glossary_is_shown(api: Api) -> None:
    page = await seen(api, "/help")
    rows = [line for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")]
    names = [row.split(" | ")[0].strip("| ") for row in rows]
    expected = [name for name in names if name != "term" and not name.startswith("---")]
    assert len(expected) > 50
    assert [term.name for group in terms() for term in group.terms] == expected
    for name in expected:
        assert f">{name}</dt>" in page
    assert 'href="/help"' in await seen(api, f"/projects/{api.project}")
