"""One word with an agent: a message and one reply, whatever else goes on in its conversation."""

from app.protocol.agents import Agent
from app.protocol.conversations import Position
from app.protocol.struct import Wire
from app.protocol.tasks import ApproveMode, Task


class AgentChatParams(Wire, frozen=True, kw_only=True):
    """Ask an agent for one reply at its head: a task in `chat` mode.

    `version` and `node_id` are what its caller saw of the agent: its version, and its head. Where the agent has moved
    on since, or works, nothing is lost and nobody waits: an agent of its own answers beside it, after `node_id`, or
    where that is null after the place from which the agent's last task began. `task_id` may be chosen by the client;
    the same one again gives the chat that is there. The rest is as in `task/start`.
    """

    agent_id: str
    prompt: str
    version: int | None = None
    node_id: str | None = None
    task_id: str | None = None
    attachments: tuple[str, ...] = ()
    model: str | None = None
    api_base: str | None = None
    api_key: str | None = None
    approve: ApproveMode = "ask"


class AgentChatResult(Wire, frozen=True, kw_only=True):
    """`position` is the message that was asked. `branched`: somebody was first, `agent` answers beside the one asked.

    Who was first learns it by the `agentUpdate` of that agent, and by a remark at the head of its branch.
    """

    agent: Agent
    task: Task
    position: Position
    branched: bool
