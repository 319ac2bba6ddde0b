"""The one style sheet: `resources/theme/window.qss` with the tokens filled in."""

from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from string import Template

from app.window.theme.tokens import Tokens

_FOLDER = Path(str(files("resources") / "theme"))


def sheet_of(tokens: Tokens) -> str:
    """A `$name` of the template that is no token raises KeyError."""
    return _template().substitute(asdict(tokens), images=_FOLDER.as_posix())


@cache
def _template() -> Template:
    return Template((_FOLDER / "window.qss").read_text(encoding="utf-8"))
