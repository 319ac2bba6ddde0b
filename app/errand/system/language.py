"""The language of the texts that a person chose, or that of the system. `errand.text.translation` translates."""

import os
import sys
from pathlib import Path

import msgspec

from errand.system.regular_file import read_regular

SYSTEM = "system"
"""The value of the setting `language` that follows the system."""

_ENGLISH = "en"
_VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
_MAX_SETTINGS_BYTES = 1_000_000


class _Settings(msgspec.Struct):
    language: str = SYSTEM


def chosen_language(settings: Path) -> str:
    """Return the language in the file of the settings, or the system's: `ERRAND_LANGUAGE` beats both.

    The file is read without the engine, which may not run yet and has nothing else to say before the first text.
    """
    chosen = os.environ.get("ERRAND_LANGUAGE") or _stored(settings)
    return _system_language() if chosen == SYSTEM else chosen


def _stored(settings: Path) -> str:
    try:
        return msgspec.json.decode(read_regular(settings, _MAX_SETTINGS_BYTES), type=_Settings).language
    except (OSError, msgspec.DecodeError, RecursionError):  # the engine reports an unreadable file
        return SYSTEM


def _system_language() -> str:
    """Return the first language that the environment names, without its encoding; on macOS and Windows the system's."""
    for variable in _VARIABLES:
        name = os.environ.get(variable, "").partition(":")[0].partition(".")[0].partition("@")[0]
        if name:
            return _ENGLISH if name in ("C", "POSIX") else name
    if sys.platform in ("win32", "darwin"):
        import locale

        return (locale.getlocale()[0] or _ENGLISH).partition(".")[0]
    return _ENGLISH
