"""Agents and personalities."""

from collections.abc import Iterable
from typing import Literal

from app.protocol.base import EmptyParams, EmptyResult, Method, Timestamp, Wire

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]
Color = Literal["", "blue", "teal", "green", "amber", "orange", "red", "pink", "violet", "gray"]


class Personality(Wire, frozen=True, kw_only=True):
    """A reusable preset.

    Empty `model` means the default model, empty `tools` all, an empty prompt the engine's own, an empty `color` none.
    `temperature` null leaves it to the model.
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
    """Someone who takes part in a conversation: a personality plus a head. `version` goes up by one with each move.

    `model`, where it is set, goes before the personality's. `beside` names the agent on whose behalf this one answers
    on a branch of its own: because both were asked at the same moment, or to compare models. Such an agent takes no
    turns.
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
    owner: str = "local"


def first_agent(agents: Iterable[Agent]) -> Agent | None:
    """Whose branch a conversation shows where none is named: the oldest that takes turns, of `agents` oldest first."""
    every = tuple(agents)
    return next((agent for agent in every if agent.beside is None), every[0] if every else None)


class AgentCreateParams(Wire, frozen=True, kw_only=True):
    """Add an agent: to a conversation, at `node_id` or where its first agent stands; without one to a new conversation.

    `agent_id` may be chosen by the client; the same id again gives the agent that is there. `name` is the
    personality's where it is null; names of a conversation's agents differ.
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
    """Move an agent to another node of its conversation; refused if `version` is not the agent's.

    `to_leaf` goes on to the end of the newest branch below that node.
    """

    agent_id: str
    node_id: str
    version: int
    to_leaf: bool = False


class AgentSetHeadResult(Wire, frozen=True, kw_only=True):
    agent: Agent


class PersonalityListResult(Wire, frozen=True, kw_only=True):
    """By name. The one with the id `assistant` is what an agent has that was given none.

    `shipped` are those that come with Errand, as they came: what a changed one can be set back to. They cannot be
    deleted. `tools` are the
    names that a personality may list.
    """

    personalities: tuple[Personality, ...]
    shipped: tuple[Personality, ...] = ()
    tools: tuple[str, ...] = ()


class PersonalitySaveParams(Wire, frozen=True, kw_only=True):
    """Store a personality under its id: a new one or a change of one that is there."""

    personality: Personality


class PersonalitySaveResult(Wire, frozen=True, kw_only=True):
    personality: Personality


class PersonalityDeleteParams(Wire, frozen=True, kw_only=True):
    """Agents that have it take `assistant` from their next task on."""

    personality_id: str


AGENT_LIST = Method("agent/list", AgentListParams, AgentListResult, False, "Agents and their heads.")

AGENT_GET = Method("agent/get", AgentIdParams, AgentResult, False, "One agent and its head.")

AGENT_CREATE = Method("agent/create", AgentCreateParams, AgentResult, True, "Add an agent.")

AGENT_DELETE = Method("agent/delete", AgentIdParams, EmptyResult, True, "Take an agent away; what it wrote stays.")

AGENT_SET_HEAD = Method(
    "agent/set_head", AgentSetHeadParams, AgentSetHeadResult, True, "Move an agent to another node."
)

PERSONALITY_LIST = Method("personality/list", EmptyParams, PersonalityListResult, False, "Presets for agents.")

PERSONALITY_SAVE = Method(
    "personality/save", PersonalitySaveParams, PersonalitySaveResult, True, "Make or change a preset."
)

PERSONALITY_DELETE = Method("personality/delete", PersonalityDeleteParams, EmptyResult, True, "Delete a preset.")
