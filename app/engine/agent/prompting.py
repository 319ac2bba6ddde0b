"""The texts in prompts/ for models."""

from importlib.resources import files


def text(name: str) -> str:
    """The text of prompts/<name>.md."""
    return (files("app.engine.agent") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()
