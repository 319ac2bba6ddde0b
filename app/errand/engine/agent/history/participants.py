"""Agents of one conversation: unique names, mentions, speaking order, and how one agent reads the others."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, takewhile

import msgspec

from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.core.errors import InvalidParams
from errand.engine.storage.database import Database
from errand.engine.tools.call_display import display_of
from errand.protocol.agents import Agent, Personality
from errand.protocol.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import FormerAgent, Node, TurnTaking
from errand.text.redaction import redact, short_line

_MAX_NAME_LENGTH = 60

_MAX_LINE_LENGTH = 200


def unused_name(wanted: str, taken: Iterable[str]) -> str:
    """`wanted`, or if taken, the first free one of "Coder 2", "Coder 3"."""
    names = {name.casefold() for name in taken}
    if wanted.casefold() not in names:
        return wanted
    return next(name for number in count(2) if (name := f"{wanted} {number}").casefold() not in names)


def checked_name(given: str) -> str:
    """Return a name given by a user, whitespace normalised.

    Raises `InvalidParams` if it cannot be used in a mention.
    """
    name = unicodedata.normalize("NFC", " ".join(given.split()))
    if not 1 <= len(name) <= _MAX_NAME_LENGTH or "@" in name or not name.isprintable():
        raise InvalidParams(f"name: 1 to {_MAX_NAME_LENGTH} characters in one line, without @.")
    return redact(name)


@dataclass(frozen=True, slots=True)
class SpeakingRound:
    """The messages since a user wrote: the user's text, the ids of the agents that replied, and the last reply."""

    message: str
    speakers: tuple[str, ...]
    reply: str


def mentioned(text: str, agents: Sequence[Agent]) -> tuple[Agent, ...]:
    """Return the agents mentioned in a text, without duplicates, in order. "@Coder 2" is not "@Coder"; "a@coder" is
    none.
    """
    by_name = {_key(agent.name): agent for agent in agents}
    if not by_name or "@" not in text:
        return ()
    longest_first = sorted(by_name, key=len, reverse=True)
    names = "|".join(re.escape(name) for name in longest_first)
    mentions = re.findall(rf"(?<![\w@.])@({names})(?!\w)", _key(text))
    return tuple({by_name[name].id: by_name[name] for name in mentions}.values())


def first_speaker(rule: TurnTaking, agents: Sequence[Agent], message: str, spoke_last: str | None) -> Agent:
    """Return the agent that answers a user's message: the one mentioned, or the next in turn.

    Resumes an interrupted round.
    """
    asked = mentioned(message, agents)
    if asked:
        return asked[0]
    if rule.rule == "round_robin":
        return _after(spoke_last, agents)[0]
    speaker_id = rule.moderator_id if rule.rule == "moderator" else spoke_last
    return next((agent for agent in agents if agent.id == speaker_id), agents[0])


def next_speaker(rule: TurnTaking, agents: Sequence[Agent], so_far: SpeakingRound) -> Agent | None:
    """Return the agent after the last speaker, which is one of `agents`; None if it is the user's turn."""
    speaker = so_far.speakers[-1]
    others = [agent for agent in agents if agent.id != speaker]
    asked = [agent for agent in mentioned(so_far.message, agents) if agent.id not in so_far.speakers]
    handed = mentioned(so_far.reply, others)
    moderator = next((agent for agent in agents if agent.id == rule.moderator_id), None)
    if rule.rule == "round_robin":
        order = mentioned(so_far.message, agents) or _after(speaker, agents)
        return next((agent for agent in order if agent.id not in so_far.speakers), None)
    if rule.rule == "moderator" and moderator is not None:
        if speaker != moderator.id:
            return moderator
        return handed[0] if handed else None
    return next(iter((*handed, *asked)), None)


def _after(agent_id: str | None, agents: Sequence[Agent]) -> Sequence[Agent]:
    """Return all agents in order, starting after this one; from the first if the id is unknown."""
    at = next((at for at, agent in enumerate(agents) if agent.id == agent_id), -1)
    return (*agents[at + 1 :], *agents[: at + 1])


def _key(text: str) -> str:
    """Comparison key: ignores case, whitespace and Unicode composition."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


class Participants:
    """One agent's view of the other agents. An agent and its side-branch agents count as the same participant."""

    def __init__(self, agent: Agent, agents: Sequence[Agent], former: Sequence[FormerAgent]) -> None:
        self._agent = agent
        own = {peer.id for peer in agents if _root(peer) == _root(agent)}
        self._others = tuple(redact(peer.name) for peer in agents if peer.beside is None and peer.id not in own)
        others = (peer for peer in (*former, *agents) if peer.id not in own and peer.id != agent.id)
        self._names = {peer.id: redact(peer.name) for peer in others}

    def with_introduction(self, personality: Personality) -> Personality:
        """Return the personality with the agent's name and the names of the others added to its prompt."""
        if not self._others:
            return personality
        others = ", ".join(f"@{name}" for name in self._others)
        others_part = prompt_text("other_agents").replace("${name}", self._agent.name).replace("${others}", others)
        own = personality.system_prompt or prompt_text("assistant")
        return msgspec.structs.replace(personality, system_prompt=f"{own}\n\n{others_part}")

    def as_messages(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """Return the nodes as this agent reads them: the same number, some of them empty.

        A node's result does not depend on the length of the branch, so the provider's cache stays valid.
        """
        return tuple(self._convert(nodes)) if self._names else tuple(nodes)

    def _convert(self, nodes: Sequence[Node]) -> Iterator[Node]:
        speaker: str | None = None
        for index, node in enumerate(nodes):
            if node.role == "assistant":
                speaker = self._names.get(node.author)
            if speaker is None or node.role not in ("assistant", "tool_result"):
                yield node
            elif node.role == "assistant":
                yield _as_user_message(node, speaker, _results(nodes, index))
            else:
                yield msgspec.structs.replace(node, blocks=())  # described together with its call


async def participants_of(agent: Agent, database: Database) -> Participants:
    """Return the current participants of the agent's conversation."""
    conversation = await database.conversations.get(agent.conversation_id)
    agents = await database.agents.list(agent.conversation_id)
    return Participants(agent, agents, conversation.former if conversation is not None else ())


def _results(nodes: Sequence[Node], reply: int) -> dict[str, ToolResultBlock]:
    """Results of a reply's calls by call id. Other replies may use the same ids."""
    later = (nodes[at] for at in range(reply + 1, len(nodes)))
    after = takewhile(lambda node: node.role not in ("assistant", "user"), later)
    return {block.call_id: block for node in after for block in node.blocks if isinstance(block, ToolResultBlock)}


def _as_user_message(reply: Node, name: str, results: dict[str, ToolResultBlock]) -> Node:
    """Another agent's reply as a user message: its text and a line for each call, without its thinking."""
    lines: list[str] = []
    for block in reply.blocks if reply.status != "failed" else ():
        if isinstance(block, TextBlock) and block.text.strip():
            lines.append(block.text.strip())
        elif isinstance(block, ToolCallBlock):
            lines.append(_call_line(block, results.get(block.call_id)))
    if not lines:
        return msgspec.structs.replace(reply, blocks=())
    text = TextBlock(text=f"[{name}]: " + "\n".join(lines))
    return msgspec.structs.replace(reply, role="user", blocks=(text,), status="complete")


def _call_line(call: ToolCallBlock, result: ToolResultBlock | None) -> str:
    display = display_of(call.tool, call.arguments)
    if display.role == "completion":
        return str(call.arguments.get(display.content, ""))
    arguments = (
        call.invalid if call.invalid is not None else msgspec.json.encode(call.arguments, order="sorted").decode()
    )
    came = "no result" if result is None else _shorten(result.summary or result.text)
    return f"(used {call.tool} {_shorten(arguments)}: {came})"


def _shorten(text: str) -> str:
    return short_line(text, _MAX_LINE_LENGTH, redact)


def _root(agent: Agent) -> str:
    return agent.beside or agent.id
