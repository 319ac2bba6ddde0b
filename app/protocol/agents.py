"""Agents and personalities."""

from typing import Literal

from app.protocol.struct import Moment, Wire

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]


class Personality(Wire, frozen=True, kw_only=True):
    """A reusable preset. Empty `model` means the default model; empty `tools` means all."""

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
    """Move an agent to another node of its conversation; refused if `version` is not the agent's."""

    agent_id: str
    node_id: str
    version: int


class AgentSetHeadResult(Wire, frozen=True, kw_only=True):
    agent: Agent
