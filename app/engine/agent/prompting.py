"""The texts in prompts/ for models."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def text(name: str) -> str:
    """The text of prompts/<name>.md."""
    return _texts()[name]


@cache
def _texts() -> Mapping[str, str]:
    """All at once, at the start: later there may be no descriptor left to open one with."""
    folder = files("app.engine.agent") / "prompts"
    return {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8").strip()
        for entry in folder.iterdir()
        if entry.name.endswith(".md")
    }
