"""Of a conversation's records those that belong to one branch, so that they are a whole conversation again."""

from collections.abc import Sequence

import msgspec

from app.engine.storage.encoding import from_json, to_json
from app.engine.storage.holdings import pictures_of
from app.engine.storage.transfer import Record
from app.protocol.agents import Agent
from app.protocol.conversations import Node
from app.protocol.tasks import Task


class _OfTask(msgspec.Struct):
    """Stored turns and executions have the names of Python, asks those of the wire."""

    task_id: str = ""
    wire_task_id: str = msgspec.field(default="", name="taskId")


class BranchRecords:
    """`pictures` are the copies that its nodes name."""

    def __init__(self, branch: Sequence[Node]) -> None:
        self._node_ids = {node.id for node in branch}
        self._task_ids = {node.task_id for node in branch if node.task_id is not None}
        self._leaf_id = branch[-1].id
        self.pictures = frozenset(path for node in branch for path in pictures_of(node.blocks))

    def fitted(self, record: Record) -> str | None:
        """Its JSON, None for one of another branch. An agent that stands elsewhere is moved to the end of this one."""
        kind, body = record
        match kind:
            case "conversation":
                return body
            case "node":
                return body if from_json(body, Node).id in self._node_ids else None
            case "task":
                return body if from_json(body, Task).id in self._task_ids else None
            case "agent":
                agent = from_json(body, Agent)
                if agent.head_id in self._node_ids:
                    return body
                return to_json(msgspec.structs.replace(agent, head_id=self._leaf_id))
            case _:
                of = from_json(body, _OfTask)
                return body if (of.task_id or of.wire_task_id) in self._task_ids else None
