"""Who of several agents speaks next: rules over what was said, which touch nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.protocol.agents import Agent
from app.protocol.conversations import TurnTaking


@dataclass(frozen=True, slots=True)
class Round:
    """What was said since a person spoke: their message, who replied to it in turn, and the last of these replies."""

    message: str
    speakers: tuple[str, ...]
    reply: str


def named(text: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Whom a text names with @, each once, in the order of the text. "@Coder 2" is not "@Coder", "a@coder" nobody."""
    by_name = {agent.name.casefold(): agent for agent in agents}
    if not by_name or "@" not in text:
        return ()
    longest_first = sorted(by_name, key=len, reverse=True)
    names = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in longest_first)
    found = re.findall(rf"(?<![\w@.])@({names})(?!\w)", text, re.IGNORECASE)
    return tuple({agent.id: agent for name in found if (agent := by_name.get(_key(name)))}.values())


def first(rule: TurnTaking, agents: Sequence[Agent], message: str, spoke_last: str | None) -> Agent:
    """Who answers a person's message: whom it names, or else whose turn it is."""
    asked = named(message, agents)
    if asked:
        return asked[0]
    if rule.rule == "round_robin":
        return agents[0]
    wanted = rule.moderator_id if rule.rule == "moderator" else spoke_last
    return next((agent for agent in agents if agent.id == wanted), agents[0])


def following(rule: TurnTaking, agents: Sequence[Agent], so_far: Round) -> Agent | None:
    """Who speaks after the last of the speakers, one of `agents`; None where the word goes back to the person."""
    speaker = so_far.speakers[-1]
    others = [agent for agent in agents if agent.id != speaker]
    asked = [agent for agent in named(so_far.message, agents) if agent.id not in so_far.speakers]
    handed = named(so_far.reply, others)
    moderator = next((agent for agent in agents if agent.id == rule.moderator_id), None)
    if rule.rule == "round_robin":
        order = named(so_far.message, agents) or agents
        return next((agent for agent in order if agent.id not in so_far.speakers), None)
    if rule.rule == "moderator" and moderator is not None:
        if speaker != moderator.id:
            return moderator
        return handed[0] if handed else None
    return next(iter((*handed, *asked)), None)


def _key(name: str) -> str:
    return " ".join(name.casefold().split())
