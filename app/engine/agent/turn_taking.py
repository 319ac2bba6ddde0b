"""Who of several agents speaks next: rules over what was said, which touch nothing."""

import re
import unicodedata
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
    by_name = {_key(agent.name): agent for agent in agents}
    if not by_name or "@" not in text:
        return ()
    longest_first = sorted(by_name, key=len, reverse=True)
    names = "|".join(re.escape(name) for name in longest_first)
    found = re.findall(rf"(?<![\w@.])@({names})(?!\w)", _key(text))
    return tuple({by_name[name].id: by_name[name] for name in found}.values())


def first(rule: TurnTaking, agents: Sequence[Agent], message: str, spoke_last: str | None) -> Agent:
    """Who answers a person's message: whom it names, or else whose turn it is. A round that was cut short goes on."""
    asked = named(message, agents)
    if asked:
        return asked[0]
    if rule.rule == "round_robin":
        return _after(spoke_last, agents)[0]
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
        order = named(so_far.message, agents) or _after(speaker, agents)
        return next((agent for agent in order if agent.id not in so_far.speakers), None)
    if rule.rule == "moderator" and moderator is not None:
        if speaker != moderator.id:
            return moderator
        return handed[0] if handed else None
    return next(iter((*handed, *asked)), None)


def _after(agent_id: str | None, agents: Sequence[Agent]) -> Sequence[Agent]:
    """All in their order, beginning behind this one; from the first where it is none of them."""
    at = next((at for at, agent in enumerate(agents) if agent.id == agent_id), -1)
    return (*agents[at + 1 :], *agents[: at + 1])


def _key(text: str) -> str:
    """However it is written: in capitals, with blanks, with its accents as signs of their own."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
