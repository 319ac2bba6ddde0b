"""Texts in the person's language: English stands in the code, each other language in a gettext catalogue.

Catalogues are in resources/locale. `errand.__main__` chooses the language before it imports anything that has texts,
so a text may be translated when its module is imported; a change of the language takes effect at the next start.
"""

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from errand.regular_file import read_regular

if TYPE_CHECKING:
    from gettext import NullTranslations

DOMAIN = "errand"
SYSTEM = "system"
"""The value of the setting `language` that follows the system."""

_ENGLISH = "en"
_COMMA_LANGUAGES = frozenset({"de"})
"""Languages that write 1.234,5 where English writes 1,234.5."""
_OTHER_MARKS = str.maketrans(",.", ".,")
_VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_NAME = re.compile(r"[A-Za-z]{2,8}(_[A-Za-z]{2,8})?")
_MAX_SETTINGS_BYTES = 1_000_000


class _Stored(msgspec.Struct):
    language: str = SYSTEM


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


def chosen_language(settings: Path) -> str:
    """The language in the file of the settings, or the system's: `ERRAND_LANGUAGE` beats both.

    The file is read without the engine, which may not run yet and has nothing else to say before the first text.
    """
    chosen = os.environ.get("ERRAND_LANGUAGE") or _stored(settings)
    return _system_language() if chosen == SYSTEM else chosen


def _stored(settings: Path) -> str:
    try:
        return msgspec.json.decode(read_regular(settings, _MAX_SETTINGS_BYTES), type=_Stored).language
    except (OSError, msgspec.DecodeError, RecursionError):  # the engine reports an unreadable file
        return SYSTEM


def _system_language() -> str:
    """The first language that the environment names, without its encoding; on macOS and Windows the system's."""
    for variable in _VARIABLES:
        name = os.environ.get(variable, "").partition(":")[0].partition(".")[0].partition("@")[0]
        if name:
            return _ENGLISH if name in ("C", "POSIX") else name
    if sys.platform in ("win32", "darwin"):
        import locale

        return (locale.getlocale()[0] or _ENGLISH).partition(".")[0]
    return _ENGLISH


def uncapitalised(text: str) -> str:
    """A label as a part of a longer line; as it is in German, whose nouns keep their capital."""
    return text if chosen() == "de" else f"{text[:1].lower()}{text[1:]}"
