"""Texts about messages: who speaks, and what a message says as a whole."""

from errand.client.safe_text import escape_hidden_line
from errand.protocol.blocks import MemoryRole, TextBlock
from errand.protocol.conversations import Node
from errand.protocol.memory import MemoryItem
from errand.text.translation import tr, trn


def engine_message_text(node: Node) -> str:
    text = " ".join(block.text.strip() for block in node.blocks if isinstance(block, TextBlock))
    return tr("Errand told the agent: “{text}”").format(text=text)


def speaker_text(role: MemoryRole, speaker: str) -> str:
    """Who said an entry of memory, to the person who reads it."""
    return tr("You") if role == "user" else " ".join(escape_hidden_line(speaker).split())


def repetition_text(item: MemoryItem) -> str:
    """Return how often memory has the text of an entry, and if a later one says something else; mostly empty."""
    times = trn("{n} time", "{n} times", item.times) if item.times > 1 else ""
    return " · ".join(filter(None, (times, tr("older statement") if item.newer else "")))


def message_markdown(node: Node | None) -> str:
    """Return the whole text of a message, verbatim."""
    blocks = node.blocks if node else ()
    return "\n\n".join(block.text.strip("\n") for block in blocks if isinstance(block, TextBlock))
