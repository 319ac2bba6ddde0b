"""Texts in the person's language: English stands in the code, each other language in a gettext catalogue.

Catalogues are in resources/locale. `errand.__main__` chooses the language before it imports anything that has texts,
so a text may be translated when its module is imported; a change of the language takes effect at the next start.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gettext import NullTranslations

DOMAIN = "errand"

_ENGLISH = "en"
_COMMA_LANGUAGES = frozenset({"de"})
"""Languages that write 1.234,5 where English writes 1,234.5."""
_OTHER_MARKS = str.maketrans(",.", ".,")
_NAME = re.compile(r"[A-Za-z]{2,8}(_[A-Za-z]{2,8})?")


class _Chosen:
    """The catalogue in use; None for English, which needs none."""

    catalogue: "NullTranslations | None" = None
    language: str = _ENGLISH


def tr(text: str) -> str:
    """The text in the chosen language. Pass a literal: catalogues are made from the code."""
    return text if _Chosen.catalogue is None or not text else _Chosen.catalogue.gettext(text)


def trn(singular: str, plural: str, n: int) -> str:
    """The form of a text that fits the number `n`, with `{n}` replaced by it, its thousands grouped."""
    if _Chosen.catalogue is None:
        form = singular if n == 1 else plural
    else:
        form = _Chosen.catalogue.ngettext(singular, plural, n)
    return form.replace("{n}", grouped(n))


def grouped(number: int) -> str:
    """A whole number with its thousands grouped, such as 12,345."""
    return decimal(f"{number:,}")


def decimal(number: str) -> str:
    """A number that was formatted for English, with the marks of the chosen language."""
    return number.translate(_OTHER_MARKS) if _Chosen.language in _COMMA_LANGUAGES else number


def chosen() -> str:
    """The language of the texts, such as `de`; `en` without a catalogue."""
    return _Chosen.language


def marked(text: str) -> str:
    """The text itself, for the catalogues: `tr` translates it where it is shown, which is another process."""
    return text


def use_language(language: str) -> None:
    """Translate from now on into `language`, such as `de`; English if it has no catalogue."""
    _Chosen.catalogue, _Chosen.language = None, _ENGLISH
    if language.partition("_")[0] == _ENGLISH or not _NAME.fullmatch(language):
        return
    import gettext
    from importlib.resources import files

    locale = str(files("errand.resources") / "locale")
    found = gettext.translation(DOMAIN, locale, [language, language.partition("_")[0]], fallback=True)
    if isinstance(found, gettext.GNUTranslations):
        # gettext also finds it by the names of Windows, such as German_Germany.
        _Chosen.catalogue, _Chosen.language = found, found.info()["language"].partition("_")[0]


def uncapitalised(text: str) -> str:
    """A label as a part of a longer line; as it is in German, whose nouns keep their capital."""
    return text if chosen() == "de" else f"{text[:1].lower()}{text[1:]}"
