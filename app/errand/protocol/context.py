"""The input of a turn, summaries, system prompts."""

from typing import Literal

from errand.protocol.base import DerivedId, Method, Wire
from errand.protocol.conversations import Node
from errand.protocol.notices import PromptRemark
from errand.protocol.tasks.methods import TaskResult

PromptPartName = Literal["role", "rules", "instructions", "skills", "facts", "workspace", "plan"]

ContextPart = Literal["system", "tools", "services", "summary", "kept", "environment", "history", "results", "memory"]


class PromptPart(Wire, frozen=True, kw_only=True):
    """A part of a system prompt, in order. `sources` are the files it was read from; `remarks` say what was
    left out; those of older prompts are sentences.

    `role` is the personality's prompt, `rules` how agents work, `instructions` the content of AGENTS.md, `skills`
    the available skills, `facts` what a person pinned. `workspace` stands before the message that starts a task, and
    in prompts of older versions within the system prompt, as `plan` does there.
    """

    name: PromptPartName
    text: str
    sources: tuple[str, ...] = ()
    remarks: tuple[PromptRemark | str, ...] = ()


class PromptGetParams(Wire, frozen=True, kw_only=True):
    """The system prompt that a task started with, or the one that a new task would start with, and the environment.

    Without `task_id`: the prompt for `personality_id`, or for the default personality of new conversations, in the
    folder `workspace`. `chat` selects chat mode.
    """

    task_id: str | None = None
    personality_id: str | None = None
    workspace: str | None = None
    chat: bool = False


class PromptGetResult(Wire, frozen=True, kw_only=True):
    """`parts` is empty for tasks that ran before prompts were stored."""

    parts: tuple[PromptPart, ...]


class ContextExplainParams(Wire, frozen=True, kw_only=True):
    """Turn `turn` of a task, or the newest turn with counted input; includes its `largest` entries, at most 100."""

    task_id: str
    turn: int | None = None
    largest: int = 0


class ContextShare(Wire, frozen=True, kw_only=True):
    """`tokens` is this part's share of the turn's input: the provider's count, divided in proportion to characters.

    A picture counts as 6,000 characters. `items` counts messages, tools or results. The part `services` are tools of
    MCP servers. Beside what was sent, `findable_items` of the part `tools` counts tools that the model finds when it
    needs them, which would take `findable_tokens`.
    """

    part: ContextPart
    tokens: int
    items: int
    findable_items: int = 0
    findable_tokens: int = 0


class ContextItem(Wire, frozen=True, kw_only=True):
    """One entry of a turn's context. `text` is its beginning in one line, `tokens` its share by length."""

    node_id: str
    part: ContextPart
    tokens: int
    text: str


class PromptShare(Wire, frozen=True, kw_only=True):
    """One part of the system prompt that the task started with, as in `prompt/get`. `tokens` is its share by length."""

    part: PromptPartName
    tokens: int
    sources: tuple[str, ...] = ()


class ContextExplainResult(Wire, frozen=True, kw_only=True):
    """`used_tokens` is the provider's count for the turn, 0 before the first reply.

    `window_tokens` is null if the model's context window is unknown. `shares` omits empty parts and is empty for
    turns of versions that did not record them. `prompt` divides the part `system`; it is empty if the prompt was not
    stored. `largest` is sorted by size, largest first; it is empty if the agent is on another branch now.
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
    """Summarise the older part of an agent's branch, in a separate task that can be stopped.

    The agent defaults to the conversation's first one and must be idle. The client may choose `task_id`; repeating
    an id returns the existing task.
    """

    conversation_id: str
    agent_id: str | None = None
    task_id: str | None = None


class SummaryEditParams(Wire, frozen=True, kw_only=True):
    """Replace the text of a summary: adds a node at the head of the agent on that branch. The old summary stays."""

    node_id: str
    text: str


class SummaryEditResult(Wire, frozen=True, kw_only=True):
    node: Node


CONTEXT_EXPLAIN = Method(
    "context/explain", ContextExplainParams, ContextExplainResult, False, "Explain what a turn sent to its model."
)

CONVERSATION_SUMMARISE = Method(
    "conversation/summarise",
    ConversationSummariseParams,
    TaskResult,
    True,
    "Summarise the older part of a branch.",
    makes=DerivedId("task_id", "task"),
)

CONVERSATION_EDIT_SUMMARY = Method(
    "conversation/edit_summary", SummaryEditParams, SummaryEditResult, True, "Edit a summary."
)

PROMPT_GET = Method("prompt/get", PromptGetParams, PromptGetResult, False, "Get a system prompt.")

METHODS = (
    CONTEXT_EXPLAIN,
    PROMPT_GET,
    CONVERSATION_SUMMARISE,
    CONVERSATION_EDIT_SUMMARY,
)
