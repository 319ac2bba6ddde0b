"""The system prompt of a task, put together from the texts in prompts/."""

import platform
from datetime import UTC, datetime
from importlib.resources import files
from string import Template

from app.protocol.tasks import TaskMode


def text(name: str) -> str:
    """The text of prompts/<name>.md."""
    return (files("app.engine.agent") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


def system_prompt(personality: str, workspace: str, mode: TaskMode) -> str:
    """The personality's own words, then how agents of Errand work, or in chat talk, and where."""
    return Template(text("talk" if mode == "chat" else "system")).safe_substitute(
        personality=personality or text("assistant"),
        date=datetime.now(UTC).astimezone().strftime("%A, %d %B %Y"),
        workspace=workspace,
        system=f"{platform.system()} {platform.machine()}",
    )
