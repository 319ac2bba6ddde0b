"""Agents and personalities."""

from collections.abc import Iterable
from typing import Literal

from errand.protocol.base import DerivedId, EmptyParams, EmptyResult, Method, Timestamp, Wire

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]
Color = Literal["", "blue", "teal", "green", "amber", "orange", "red", "pink", "violet", "gray"]

# Ends the name of a tool's reading form in the tools of a personality: `code:read`.
READING = ":read"


class Personality(Wire, frozen=True, kw_only=True):
    """A reusable preset.

    An empty `model` selects the default model, empty `tools` all tools, an empty prompt the engine's default prompt,
    an empty `color` no color. `tools` are names of tools; `code:read`, `shell:read` and `browser:read` are those
    tools as far as they only read; `mcp` are the tools of all servers, `mcp:SERVER` those of one, `SERVER__TOOL` is a
    single one. With `temperature` null the model's default applies.
    """

    id: str
    name: str
    system_prompt: str
    model: str = ""
    tools: tuple[str, ...] = ()
    thinking_level: ThinkingLevel = "off"
    color: Color = ""
    temperature: float | None = None
    owner: str = "local"


class Agent(Wire, frozen=True, kw_only=True):
    """A participant in a conversation: a personality plus a head. Each move of the head increases `version` by one.

    A non-empty `model` overrides the personality's. `beside` names the agent that this one answers for on a separate
    branch: because both received a message at the same moment, or to compare models. An agent with `beside` takes no
    turns. `called_by` is the task whose sub-agent this one is.
    """

    id: str
    conversation_id: str
    personality_id: str
    name: str
    head_id: str | None
    version: int
    created_at: Timestamp
    model: str = ""
    color: Color = ""
    beside: str | None = None
    called_by: str | None = None
    owner: str = "local"


def first_agent(agents: Iterable[Agent]) -> Agent | None:
    """Return the agent whose branch a conversation shows by default: the first of `agents`, oldest first, that takes
    turns.
    """
    every = tuple(agents)
    return next((agent for agent in every if agent.beside is None), every[0] if every else None)


class AgentCreateParams(Wire, frozen=True, kw_only=True):
    """Add an agent to a conversation, at `node_id` or at the head of its first agent, or to a new conversation.

    The client may choose `agent_id`; repeating an id returns the existing agent. `name` defaults to the
    personality's; names are unique within a conversation. A null `conversation_id` creates a conversation.
    """

    agent_id: str | None = None
    conversation_id: str | None = None
    node_id: str | None = None
    personality_id: str | None = None
    name: str | None = None
    model: str = ""
    color: Color = ""
    workspace: str | None = None


class AgentIdParams(Wire, frozen=True, kw_only=True):
    agent_id: str


class AgentResult(Wire, frozen=True, kw_only=True):
    agent: Agent


class AgentListParams(Wire, frozen=True, kw_only=True):
    conversation_id: str | None = None


class AgentListResult(Wire, frozen=True, kw_only=True):
    agents: tuple[Agent, ...]


class AgentSetHeadParams(Wire, frozen=True, kw_only=True):
    """Move an agent to another node of its conversation. Refused if `version` is not the agent's current version.

    `to_leaf` continues to the end of the newest branch below that node.
    """

    agent_id: str
    node_id: str
    version: int
    to_leaf: bool = False


class AgentSetHeadResult(Wire, frozen=True, kw_only=True):
    agent: Agent


class PersonalityListResult(Wire, frozen=True, kw_only=True):
    """Sorted by name. An agent without a personality uses the one with the id `assistant`.

    `shipped` are the personalities that come with Errand, in their original form, so that a client can reset a
    changed one. They cannot be deleted. `tools` are the names that a personality may list.
    """

    personalities: tuple[Personality, ...]
    shipped: tuple[Personality, ...] = ()
    tools: tuple[str, ...] = ()


class PersonalitySaveParams(Wire, frozen=True, kw_only=True):
    """Store a personality under its id, as a new one or as a replacement."""

    personality: Personality


class PersonalitySaveResult(Wire, frozen=True, kw_only=True):
    personality: Personality


class PersonalityDeleteParams(Wire, frozen=True, kw_only=True):
    """Agents with this personality use `assistant` from their next task on."""

    personality_id: str


AGENT_LIST = Method("agent/list", AgentListParams, AgentListResult, False, "List agents and their heads.")

AGENT_GET = Method("agent/get", AgentIdParams, AgentResult, False, "Get an agent and its head.")

AGENT_CREATE = Method(
    "agent/create",
    AgentCreateParams,
    AgentResult,
    True,
    "Add an agent to a conversation.",
    makes=DerivedId("agent_id", "agent"),
)

AGENT_DELETE = Method("agent/delete", AgentIdParams, EmptyResult, True, "Delete an agent; its messages stay.")

AGENT_SET_HEAD = Method(
    "agent/set_head", AgentSetHeadParams, AgentSetHeadResult, True, "Move an agent to another node."
)

PERSONALITY_LIST = Method("personality/list", EmptyParams, PersonalityListResult, False, "List the personalities.")

PERSONALITY_SAVE = Method(
    "personality/save", PersonalitySaveParams, PersonalitySaveResult, True, "Create or change a personality."
)

PERSONALITY_DELETE = Method("personality/delete", PersonalityDeleteParams, EmptyResult, True, "Delete a personality.")

METHODS = (
    AGENT_LIST,
    AGENT_GET,
    AGENT_CREATE,
    AGENT_DELETE,
    AGENT_SET_HEAD,
    PERSONALITY_LIST,
    PERSONALITY_SAVE,
    PERSONALITY_DELETE,
)
