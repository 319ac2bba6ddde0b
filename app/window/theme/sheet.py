"""The one style sheet: the templates in `resources/theme` with the tokens filled in."""

from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template

from app.window.theme.tokens import Tokens

_FOLDER = Path(str(files("resources") / "theme"))
_FILES = ("window.qss", "views.qss")
"""What all controls have, and what single views have."""


def sheet_of(tokens: Tokens) -> str:
    """A `$name` of the template that is no token raises KeyError."""
    return _template().substitute(asdict(tokens), images=_FOLDER.as_posix())


@cache
def _template() -> Template:
    return Template("\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in _FILES))
