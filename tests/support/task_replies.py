"""Replies and results that tests of tasks have in common."""

from app.protocol.blocks import ToolResultBlock
from app.protocol.conversations import Node
from tests.support.model_server import Call, Reply

DONE = Reply(calls=(Call("task_complete", {"summary": "all done"}),))


def shell(command: str) -> Reply:
    return Reply(text="Running.", calls=(Call("shell", {"command": command}),))


def results(nodes: list[Node]) -> list[ToolResultBlock]:
    return [block for node in nodes for block in node.blocks if isinstance(block, ToolResultBlock)]
