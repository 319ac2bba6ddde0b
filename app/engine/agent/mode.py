"""What a task is taken for where that is left to it, and what follows when a person takes it for something else."""

from app.engine.agent.control import AskUser, TaskComplete
from app.engine.agent.events import AgentEvent, MessageEnd
from app.engine.agent.live import LiveTask
from app.engine.agent.prompting import text as prompt_text
from app.engine.agent.task import words
from app.engine.errors import IllegalMove
from app.engine.messages import AssistantMessage
from app.engine.storage.database import Database
from app.protocol.tasks import DecidedMode, Task, TaskSetModeParams, TaskStartParams


class FirstReply:
    """A listener of one task in `auto` mode: its first reply says what it is."""

    def __init__(self, live: LiveTask) -> None:
        self._live = live

    async def listen(self, event: AgentEvent) -> None:
        task = self._live.task
        if task.mode != "auto" or task.decided is not None:
            return
        match event:
            case MessageEnd(message=AssistantMessage() as reply):
                decided = taken_from(reply)
                if decided is not None:
                    self._live.take_for("auto", decided)
            case _:
                pass


def taken_from(reply: AssistantMessage) -> DecidedMode | None:
    """A reply that begins work makes a task, an answer a chat; a question to the person leaves it open.

    An answer may be marked as the last word, as a model with tools as text does with its final answer. A reply that was
    broken off says nothing, nor does what is only announced: words are not guessed at.
    """
    if reply.stop_reason in ("error", "aborted"):
        return None
    called = {call.name for call in reply.tool_calls}
    if not called or (called == {TaskComplete.name} and reply.text):
        return "chat"
    return None if called == {AskUser.name} else "task"


async def as_task(task: Task, params: TaskSetModeParams, database: Database) -> TaskStartParams:
    """The task that goes on where a chat ended. `IllegalMove` for another end, or where the agent has moved on."""
    is_chat = task.stop_reason == "completed" and "chat" in (task.mode, task.decided)
    if params.mode != "task" or not is_chat:
        raise IllegalMove(f"The task is {words(task.status)}. Only a chat at its end can go on as a task.")
    agent = await database.agents.get(task.agent_id)
    head = await database.nodes.get(agent.head_id) if agent is not None and agent.head_id is not None else None
    if head is None or head.task_id != task.id:
        raise IllegalMove("The conversation has gone on since then. Say there what is to be done.")
    return TaskStartParams(
        prompt=prompt_text("as_task"),
        task_id=params.new_task_id,
        conversation_id=task.conversation_id,
        agent_id=task.agent_id,
        model=task.model,
        api_base=task.api_base,
        mode="task",
        approve=task.approve,
        attended=task.attended,
        thinking_level=task.thinking_level,
        max_turns=task.max_turns,
        budget_usd=task.budget_usd,
    )
