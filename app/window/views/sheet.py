"""The main window's part of the style sheet: `resources/theme/views.qss` with the tokens filled in."""

from dataclasses import asdict
from importlib.resources import files
from string import Template

from app.window.theme.tokens import Tokens


def views_sheet(tokens: Tokens) -> str:
    template = (files("resources") / "theme" / "views.qss").read_text(encoding="utf-8")
    return Template(template).substitute(asdict(tokens))
