"""Loads the prompt texts in templates/ by name."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from errand.engine.core.messages import Text, UserMessage
from errand.protocol.blocks import EngineMessageKind


def prompt_text(name: str) -> str:
    """Return the text of templates/<name>.md."""
    return _texts()[name]


def engine_message(kind: EngineMessageKind) -> UserMessage:
    """Return a message of the engine to the agent during a task."""
    return UserMessage((Text(prompt_text(kind)),), kind=kind)


@cache
def _texts() -> Mapping[str, str]:
    """Read all files at the start: later there may be no file descriptor left."""
    folder = files("errand.engine.agent.prompt") / "templates"
    return {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8").strip()
        for entry in folder.iterdir()
        if entry.name.endswith(".md")
    }
