"""System prompts: what a model is told before anything is said."""

from typing import Literal

from app.protocol.struct import Wire

PromptPartName = Literal["role", "rules", "instructions", "skills", "workspace"]


class PromptPart(Wire, frozen=True, kw_only=True):
    """A part of a system prompt, in its order. `sources` are the files it was read from; `remarks` are for people.

    `role` is the personality's, `rules` how agents work, `instructions` from AGENTS.md, `skills` those there are.
    """

    name: PromptPartName
    text: str
    sources: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class PromptGetParams(Wire, frozen=True, kw_only=True):
    """The system prompt that a task began with, or the one that a task would begin with now.

    Without `task_id`: of `personality_id`, or the one that new conversations have, in the folder `workspace`; `chat`
    for one that only talks.
    """

    task_id: str | None = None
    personality_id: str | None = None
    workspace: str | None = None
    chat: bool = False


class PromptGetResult(Wire, frozen=True, kw_only=True):
    """No parts of a task that ran before they were kept."""

    parts: tuple[PromptPart, ...]
