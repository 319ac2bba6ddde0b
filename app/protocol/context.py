"""What a turn was sent, summaries, system prompts."""

from typing import Literal

from app.protocol import tasks
from app.protocol.base import Method, Wire
from app.protocol.conversations import Node

PromptPartName = Literal["role", "rules", "instructions", "skills", "workspace"]

ContextPart = Literal["system", "tools", "summary", "kept", "history", "results", "memory"]


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


class ContextExplainParams(Wire, frozen=True, kw_only=True):
    """Turn `turn` of a task, or the newest one whose input was counted; of its entries the `largest`, at most 100."""

    task_id: str
    turn: int | None = None
    largest: int = 0


class ContextShare(Wire, frozen=True, kw_only=True):
    """`tokens` is this part's share of the turn's input: the provider counted the whole, characters divide it.

    A picture counts as 6,000 characters. `items` are messages, tools or results.
    """

    part: ContextPart
    tokens: int
    items: int


class ContextItem(Wire, frozen=True, kw_only=True):
    """One entry of a turn's context: `text` is its beginning in one line, `tokens` its share by length."""

    node_id: str
    part: ContextPart
    tokens: int
    text: str


class PromptShare(Wire, frozen=True, kw_only=True):
    """One part of the system prompt that the task began with, as `prompt/get` gives it; `tokens` by length."""

    part: PromptPartName
    tokens: int
    sources: tuple[str, ...] = ()


class ContextExplainResult(Wire, frozen=True, kw_only=True):
    """`used_tokens` is what the provider counted for the turn, 0 before the first reply.

    `window_tokens` is null where the model's window is not known. Parts that are empty are left out; there are none for
    turns of versions that did not note them. `prompt` divides the part `system`; it is empty where the prompt was not
    kept. `largest` comes largest first; none where the agent is on another branch now.
    """

    task_id: str
    turn: int
    model: str
    used_tokens: int
    window_tokens: int | None
    shares: tuple[ContextShare, ...]
    prompt: tuple[PromptShare, ...] = ()
    largest: tuple[ContextItem, ...] = ()


class ConversationSummariseParams(Wire, frozen=True, kw_only=True):
    """Have the older part of an agent's branch summarised, by a task of its own that can be stopped.

    The agent is the conversation's first one where none is named; it must be idle. `task_id` may be chosen by the
    client; the same one again gives the task that is there.
    """

    conversation_id: str
    agent_id: str | None = None
    task_id: str | None = None


class SummaryEditParams(Wire, frozen=True, kw_only=True):
    """Another text for a summary: a new node at the head of the agent on whose branch it is. The old one stays."""

    node_id: str
    text: str


class SummaryEditResult(Wire, frozen=True, kw_only=True):
    node: Node


CONTEXT_EXPLAIN = Method("context/explain", ContextExplainParams, ContextExplainResult, False, "What a turn was sent.")

CONVERSATION_SUMMARISE = Method(
    "conversation/summarise",
    ConversationSummariseParams,
    tasks.TaskResult,
    True,
    "Summarise what is older.",
)

CONVERSATION_EDIT_SUMMARY = Method(
    "conversation/edit_summary", SummaryEditParams, SummaryEditResult, True, "Change a summary."
)

PROMPT_GET = Method("prompt/get", PromptGetParams, PromptGetResult, False, "A system prompt.")
