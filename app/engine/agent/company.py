"""A conversation of several agents as one of them reads it: what the others said is said to it, under their names."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

import msgspec

from app.engine.agent.prompting import text
from app.engine.storage.database import Database
from app.protocol.agents import Agent, Personality
from app.protocol.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from app.protocol.conversations import FormerAgent, Node

_LONGEST = 200


class Company:
    """What `agent` sees of the others. An agent and those that answer beside it are one and the same to each other."""

    def __init__(self, agent: Agent, agents: Sequence[Agent], former: Sequence[FormerAgent]) -> None:
        self._agent = agent
        own = {one.id for one in agents if _root(one) == _root(agent)}
        self._others = tuple(one.name for one in agents if one.beside is None and one.id not in own)
        self._names = {one.id: one.name for one in (*former, *agents) if one.id not in own and one.id != agent.id}

    def briefed(self, personality: Personality) -> Personality:
        """The personality, told its name and who else is there."""
        if not self._others:
            return personality
        others = ", ".join(f"@{name}" for name in self._others)
        told = text("company").replace("${name}", self._agent.name).replace("${others}", others)
        own = personality.system_prompt or text("assistant")
        return msgspec.structs.replace(personality, system_prompt=f"{own}\n\n{told}")

    def heard(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        """As many nodes as there are, some of them empty.

        The same nodes give the same again, however far the branch went on: a provider's cache holds.
        """
        return tuple(self._heard(nodes)) if self._names else tuple(nodes)

    def _heard(self, nodes: Sequence[Node]) -> Iterator[Node]:
        speaker: str | None = None
        for index, node in enumerate(nodes):
            if node.role == "assistant":
                speaker = self._names.get(node.author)
            if speaker is None or node.role not in ("assistant", "tool_result"):
                yield node
            elif node.role == "assistant":
                yield _said(node, speaker, _results(nodes, index))
            else:
                yield msgspec.structs.replace(node, blocks=())  # it is told of with its call


async def company_of(agent: Agent, database: Database) -> Company:
    """As it is now."""
    conversation = await database.conversations.get(agent.conversation_id)
    agents = await database.agents.list(agent.conversation_id)
    return Company(agent, agents, conversation.former if conversation is not None else ())


def _results(nodes: Sequence[Node], reply: int) -> dict[str, ToolResultBlock]:
    """What the calls of a reply gave, by their ids, which other replies may have used too."""
    later = (nodes[at] for at in range(reply + 1, len(nodes)))
    after = takewhile(lambda node: node.role not in ("assistant", "user"), later)
    return {block.call_id: block for node in after for block in node.blocks if isinstance(block, ToolResultBlock)}


def _said(reply: Node, name: str, results: dict[str, ToolResultBlock]) -> Node:
    """Another's reply as a message: its words, and a line for each call. Its thoughts are its own."""
    lines: list[str] = []
    for block in reply.blocks if reply.status != "failed" else ():
        if isinstance(block, TextBlock) and block.text.strip():
            lines.append(block.text.strip())
        elif isinstance(block, ToolCallBlock):
            lines.append(_call(block, results.get(block.call_id)))
    if not lines:
        return msgspec.structs.replace(reply, blocks=())
    words = TextBlock(text=f"[{name}]: " + "\n".join(lines))
    return msgspec.structs.replace(reply, role="user", blocks=(words,), status="complete")


def _call(call: ToolCallBlock, result: ToolResultBlock | None) -> str:
    if call.tool == "task_complete":
        return str(call.arguments.get("summary", ""))
    given = call.invalid if call.invalid is not None else msgspec.json.encode(call.arguments, order="sorted").decode()
    came = "no result" if result is None else result.summary or _short(result.text)
    return f"(used {call.tool} {_short(given)}: {came})"


def _short(given: str) -> str:
    line = " ".join(given.split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "…"


def _root(agent: Agent) -> str:
    return agent.beside or agent.id
