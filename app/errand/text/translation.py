"""Texts in the person's language: English stands in the code, each other language in a gettext catalogue.

Catalogues are in resources/locale. `errand.__main__` chooses the language before it imports anything that has texts,
so a text may be translated when its module is imported; a change of the language takes effect at the next start.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gettext import NullTranslations

DOMAIN = "errand"

_ENGLISH = "en"
_OTHER_MARKS = str.maketrans(",.", ".,")
_NAME = re.compile(r"[A-Za-z]{2,8}(_[A-Za-z]{2,8})?")


@dataclass(frozen=True, slots=True)
class _Conventions:
    """The conventions of a language that its catalogue does not hold.

    With `has_decimal_comma` it writes 1.234,5 where English writes 1,234.5.
    """

    has_decimal_comma: bool = False
    capitalises_nouns: bool = False


_ENGLISH_CONVENTIONS = _Conventions()
_CONVENTIONS = {"de": _Conventions(has_decimal_comma=True, capitalises_nouns=True)}


class _Chosen:
    """The language in use and its catalogue; None for English, which needs none."""

    catalogue: "NullTranslations | None" = None
    language: str = _ENGLISH
    conventions: _Conventions = _ENGLISH_CONVENTIONS


def tr(text: str) -> str:
    """Return the text in the chosen language. Pass a literal: catalogues are made from the code."""
    return text if _Chosen.catalogue is None or not text else _Chosen.catalogue.gettext(text)


def trn(singular: str, plural: str, n: int) -> str:
    """Return the form of a text that fits the number `n`, with `{n}` replaced by it, its thousands grouped."""
    if _Chosen.catalogue is None:
        form = singular if n == 1 else plural
    else:
        form = _Chosen.catalogue.ngettext(singular, plural, n)
    return form.replace("{n}", grouped(n))


def grouped(number: int) -> str:
    """Return a whole number with its thousands grouped, such as 12,345."""
    return decimal(f"{number:,}")


def decimal(number: str) -> str:
    """Return a number that was formatted for English, with the marks of the chosen language."""
    return number.translate(_OTHER_MARKS) if _Chosen.conventions.has_decimal_comma else number


def chosen() -> str:
    """Return the language of the texts, such as `de`; `en` without a catalogue."""
    return _Chosen.language


def marked(text: str) -> str:
    """Return the text itself, for the catalogues: `tr` translates it where it is shown, which is another process."""
    return text


def use_language(language: str) -> None:
    """Translate from now on into `language`, such as `de`; English if it has no catalogue."""
    _Chosen.catalogue, _Chosen.language, _Chosen.conventions = None, _ENGLISH, _ENGLISH_CONVENTIONS
    if language.partition("_")[0] == _ENGLISH or not _NAME.fullmatch(language):
        return
    import gettext
    from importlib.resources import files

    locale = str(files("errand.resources") / "locale")
    catalogue = gettext.translation(DOMAIN, locale, [language, language.partition("_")[0]], fallback=True)
    if isinstance(catalogue, gettext.GNUTranslations):
        # gettext also finds it by the names of Windows, such as German_Germany.
        _Chosen.catalogue, _Chosen.language = catalogue, catalogue.info()["language"].partition("_")[0]
        _Chosen.conventions = _CONVENTIONS.get(_Chosen.language, _ENGLISH_CONVENTIONS)


def uncapitalised(text: str) -> str:
    """Return a label as a part of a longer line. It keeps its capital in a language whose nouns have one."""
    return text if _Chosen.conventions.capitalises_nouns else f"{text[:1].lower()}{text[1:]}"
