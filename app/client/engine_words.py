"""What the engine tells an agent by itself, as people read it: nobody takes it for a person's message."""

from app.protocol.blocks import TextBlock
from app.protocol.conversations import Node


def engine_words(node: Node) -> str:
    said = " ".join(block.text.strip() for block in node.blocks if isinstance(block, TextBlock))
    return f"Errand told the agent: “{said}”"
