"""Agents and personalities."""

from typing import Literal

from app.protocol.struct import Moment, Wire

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]


class Personality(Wire, frozen=True, kw_only=True):
    """A reusable preset. Empty `model` means the default model, empty `tools` all, an empty prompt the engine's own."""

    id: str
    name: str
    system_prompt: str
    model: str = ""
    tools: tuple[str, ...] = ()
    thinking_level: ThinkingLevel = "off"


class Agent(Wire, frozen=True, kw_only=True):
    """Someone who takes part in a conversation: a personality plus a head. `version` goes up by one with each move."""

    id: str
    conversation_id: str
    personality_id: str
    name: str
    head_id: str | None
    version: int
    created_at: Moment


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
