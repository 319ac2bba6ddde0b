"""Start params of a task that follows another: a retried reply, a chat that becomes a task."""

from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.agent.run.task_state import status_text
from errand.engine.agent.tasks.approval_modes import inherited
from errand.engine.core.errors import IllegalMove, InvalidParams, NotFound
from errand.engine.storage.database import Database
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import Node
from errand.protocol.tasks.methods import TaskRetryParams, TaskSetModeParams, TaskStartParams
from errand.protocol.tasks.task import Task


async def retry_params(params: TaskRetryParams, database: Database) -> tuple[TaskStartParams, Node]:
    """Return the params of the retry, and the reply to retry. Raises `InvalidParams` if the node is not a reply."""
    reply = await database.nodes.get(params.node_id)
    if reply is None:
        raise NotFound(f"There is no node {params.node_id!r}.")
    if reply.role != "assistant" or reply.parent_id is None:
        raise InvalidParams("Only an agent's reply can be retried. To change a message, send it again.")
    task = await database.tasks.get(reply.task_id) if reply.task_id is not None else None
    if task is None:
        raise NotFound("The task of this reply is not stored, so it cannot be tried again. Send the message again.")
    agent = await database.agents.get(task.agent_id)
    is_same_model = params.model in (None, task.request.model)
    start = TaskStartParams(
        prompt=await _prompt_above(reply.parent_id, database) or task.request.prompt,
        task_id=params.task_id,
        conversation_id=task.conversation_id,
        agent_id=agent.id if agent is not None else None,  # a new agent takes over if the original was deleted
        model=params.model or task.request.model,
        api_base=task.request.api_base if is_same_model else None,
        mode=task.options.mode,
        approve=inherited(task),
        attended=task.options.attended,
        thinking_level=task.request.thinking_level,
        max_turns=task.budget.max_turns,
        budget_usd=task.budget.budget_usd,
        max_minutes=task.budget.max_minutes,
        max_tokens=task.budget.max_tokens,
        answer_schema=task.request.answer_schema,
    )
    return start, reply


async def _prompt_above(node_id: str, database: Database) -> str:
    """Return the text of the last user message before this node."""
    for node in reversed(await database.nodes.recent(node_id)):
        if node.is_from_person:
            return "\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))
    return ""


async def task_after_chat(task: Task, params: TaskSetModeParams, database: Database) -> TaskStartParams:
    """Return the task that continues a finished chat.

    Raises `IllegalMove` for other tasks, or if the agent has moved on.
    """
    is_chat = task.outcome.stop_reason == "completed" and "chat" in (task.options.mode, task.options.decided)
    if params.mode != "task" or not is_chat:
        raise IllegalMove(
            f"The task is {status_text(task.activity.status)}. Only a chat at its end can go on as a task."
        )
    agent = await database.agents.get(task.agent_id)
    head = await database.nodes.get(agent.head_id) if agent is not None and agent.head_id is not None else None
    if head is None or head.task_id != task.id:
        raise IllegalMove("The conversation has gone on since then. Say there what to do.")
    return TaskStartParams(
        prompt=prompt_text("as_task"),
        task_id=params.new_task_id,
        conversation_id=task.conversation_id,
        agent_id=task.agent_id,
        model=task.request.model,
        api_base=task.request.api_base,
        mode="task",
        approve=inherited(task),
        attended=task.options.attended,
        thinking_level=task.request.thinking_level,
        max_turns=task.budget.max_turns,
        budget_usd=task.budget.budget_usd,
        max_minutes=task.budget.max_minutes,
        max_tokens=task.budget.max_tokens,
    )
