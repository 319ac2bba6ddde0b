"""`errand compare`: two branches of a conversation, from where they part."""

import msgspec

from app.cli.beside import beside
from app.cli.options import Options
from app.cli.terminal import Terminal
from app.client.figures import count, duration, money, tokens
from app.client.launch import connect
from app.paths import Paths
from app.protocol.blocks import TextBlock, ToolCallBlock
from app.protocol.comparisons import BranchSide, ConversationCompareParams
from app.protocol.conversations import Node
from app.protocol.wire import CONVERSATION_COMPARE


async def compare(options: Options, paths: Paths, terminal: Terminal) -> int:
    one, other = options.ids or ("", "")
    connection = await connect(paths, "errand compare")
    try:
        params = ConversationCompareParams(a_node_id=one, b_node_id=other)
        told = await connection.call(CONVERSATION_COMPARE, params)
    finally:
        await connection.close()
    if options.json:
        terminal.line(msgspec.json.encode(told).decode())
        return 0
    sides = [(_heading(side, node_id), _text(side), _took(side)) for side, node_id in ((told.a, one), (told.b, other))]
    for line in beside(sides, terminal.width, terminal.style):
        terminal.line(line)
    return 0


def _heading(side: BranchSide, node_id: str) -> str:
    models = dict.fromkeys(node.model for node in side.nodes if node.model)
    return ", ".join(models) or node_id


def _text(side: BranchSide) -> str:
    if not side.nodes:
        return "Nothing more: the other branch goes on from here."
    more = side.count - len(side.nodes)
    left = [f"… and {count(more, 'further entry', 'further entries')}"] if more else []
    return "\n\n".join([*filter(None, map(_said, side.nodes)), *left])


def _said(node: Node) -> str:
    lines = [
        block.text.strip() if isinstance(block, TextBlock) else f"(calls {block.tool})"
        for block in node.blocks
        if isinstance(block, TextBlock | ToolCallBlock)
    ]
    said = "\n".join(line for line in lines if line)
    return f"> {said}" if said and node.is_from_person else said


def _took(side: BranchSide) -> str:
    parts = (count(len(side.tasks), "task"), tokens(side.usage), money(side.usage), duration(side.usage.seconds))
    return " · ".join(part for part in parts if part)
