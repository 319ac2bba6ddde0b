"""Who speaks: messages of the engine to an agent, and entries of memory."""

from errand.client.safe_text import escape_hidden_line
from errand.protocol.blocks import MemoryRole, TextBlock
from errand.protocol.conversations import Node
from errand.text.translation import tr


def engine_message_text(node: Node) -> str:
    text = " ".join(block.text.strip() for block in node.blocks if isinstance(block, TextBlock))
    return tr("Errand told the agent: “{text}”").format(text=text)


def speaker_text(role: MemoryRole, speaker: str) -> str:
    """Who said an entry of memory, to the person who reads it."""
    return tr("You") if role == "user" else " ".join(escape_hidden_line(speaker).split())
