"""Choice of the language, and numbers, days and durations in it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from leadline.http.status_pages.public.language import (
    Reader,
    accepted_language,
    dated,
    day,
    duration,
    language_of,
    listed,
    milliseconds,
    month_name,
    number,
    percent,
    phrase_html,
    reader_now,
    speaking,
)
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant
from leadline.storage.status_pages.rules.page_language import LANGUAGES, SETTINGS, language_fault

JUNE: Instant = Instant(1_781_000_000 * SECOND)


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("en-GB,en;q=0.9,de;q=0.8", "en"),
        ("fr,de;q=0.5,en;q=0.4", "de"),
        ("en;q=0.4, de;q=0.5", "de"),
        ("de;q=0", "en"),
        ("fr", "en"),
        ("*", "en"),
        ("de;q=nan", "en"),
        ("de;q=2", "en"),
        ("DE", "de"),
        ("de" + " " * 600, "en"),
    ],
)
def test_the_first_known_language_is_accepted(header: str, language: str) -> None:
    assert accepted_language(header) == language


@given(st.text())
def test_any_header_gives_a_language(header: str) -> None:
    assert accepted_language(header) in LANGUAGES


@given(
    st.sampled_from(SETTINGS),
    st.sampled_from([None, *LANGUAGES]),
    st.sampled_from(LANGUAGES),
)
def test_the_reader_chooses_before_the_page_and_the_browser(
    setting: str, chosen: str | None, accepted: str
) -> None:
    expected = chosen or (accepted if setting == "auto" else setting)
    assert language_of(setting, chosen, accepted) == expected


def test_a_setting_is_one_of_the_languages() -> None:
    assert all(language_fault(setting) is None for setting in SETTINGS)
    assert language_fault("fr") == "must be one of auto, en, de"


def test_formats_follow_the_language() -> None:
    with speaking(Reader(language="de")):
        assert number(1_234_567) == "1.234.567"
        assert percent(Fraction(99_987, 100_000), 100_000) == "99,987\u202f%"
        assert percent(Fraction(1), 10) == "100\u202f%"
        assert milliseconds(0) == "< 1\u202fms"
        assert milliseconds(4_100) == "4.100\u202fms"
        assert dated(JUNE) == "9. Juni 2026"
        assert day(JUNE) == "9. Juni"
        assert month_name("2026-03") == "März 2026"
        assert duration(3 * DAY) == "3 Tage"
        assert duration(100 * MINUTE) == "1\u202fh 40\u202fmin"
        assert listed(["a", "b", "c"]) == "a, b und c"
    assert reader_now() == Reader()
    assert percent(Fraction(99_987, 100_000), 100_000) == "99.987%"
    assert (dated(JUNE), duration(3 * DAY), duration(2 * HOUR)) == (
        "9 June 2026",
        "3\u202fd",
        "2\u202fh",
    )


@given(st.text())
def test_values_are_escaped_and_never_templates(text: str) -> None:
    for code in LANGUAGES:
        with speaking(Reader(language=code)):
            said = phrase_html("frame.title", title=text)
            assert str(said).count(str(Markup.escape(text))) >= 1
            assert "<" not in str(said)
    assert str(phrase_html("frame.title", title="{0}{title}<b>")) == "{0}{title}&lt;b&gt; status"


def test_the_switch_keeps_the_other_parameters() -> None:
    reader = Reader(language="de", query=(("token", "a&b"), ("month", "2026-05")), path="/x")
    assert reader.switches() == [("/x?token=a%26b&month=2026-05&lang=en", "en", "English")]
    assert Reader().switches() == []
