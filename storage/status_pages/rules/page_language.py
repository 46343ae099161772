"""Languages of the fixed words of a public status page."""

from typing import Final

ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "de")
# The language that the browser of the reader asks for.
AUTO: Final = "auto"
SETTINGS: Final = (AUTO, *LANGUAGES)


def language_fault(setting: str) -> str | None:
    """Returns the reason to refuse the language of a page, None if it is valid."""
    return None if setting in SETTINGS else f"must be one of {', '.join(SETTINGS)}"
