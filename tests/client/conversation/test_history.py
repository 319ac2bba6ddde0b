"""Stored nodes and tasks as events."""

from datetime import UTC, datetime

import msgspec

from errand.client.conversation.history import history
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import Node
from errand.protocol.events import TaskMessage, TaskUpdate
from errand.protocol.tasks.task import replace_fields
from tests.support.protocol_events import node, task


def test_an_ended_task_follows_its_last_message_in_a_history() -> None:
    nodes = (node("user", TextBlock(text="a")), node("assistant", TextBlock(text="b"), identifier="node_2"))
    later = msgspec.structs.replace(nodes[0], id="node_3", task_id="task_2")
    ended = replace_fields(task("completed"), ended_at=datetime.now(UTC))
    events = [*history((*nodes, later), (ended,))]
    assert events == [*map(_message, nodes), TaskUpdate(task=ended), _message(later)]


def _message(node: Node) -> TaskMessage:
    return TaskMessage(node=node)
