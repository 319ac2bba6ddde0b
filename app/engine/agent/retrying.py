"""Another try of a reply: what is asked of the new task, taken from the task of that reply and from the request."""

from app.engine.errors import InvalidParams, NotFound
from app.engine.storage.database import Database
from app.protocol.blocks import TextBlock
from app.protocol.conversations import Node
from app.protocol.tasks import TaskRetryParams, TaskStartParams


async def as_start(params: TaskRetryParams, database: Database) -> tuple[TaskStartParams, Node]:
    """The task that would try again, and the reply it is about. `InvalidParams` for what is not a reply."""
    reply = await database.nodes.get(params.node_id)
    if reply is None:
        raise NotFound(f"There is no node {params.node_id!r}.")
    if reply.role != "assistant" or reply.parent_id is None:
        raise InvalidParams("Only a reply of an agent can be written anew. To change a message, send it again.")
    task = await database.tasks.get(reply.task_id) if reply.task_id is not None else None
    if task is None:
        raise NotFound("The task of this reply is not stored, so it cannot be tried again. Send the message again.")
    agent = await database.agents.get(task.agent_id)
    is_same_model = params.model in (None, task.model)
    start = TaskStartParams(
        prompt=await _prompt_above(reply.parent_id, database) or task.prompt,
        task_id=params.task_id,
        conversation_id=task.conversation_id,
        agent_id=agent.id if agent is not None else None,  # another one tries where its own was deleted
        model=params.model or task.model,
        api_base=task.api_base if is_same_model else None,
        mode=task.mode,
        approve=task.approve,
        attended=task.attended,
        thinking_level=task.thinking_level,
        max_turns=task.max_turns,
        budget_usd=task.budget_usd,
        answer_schema=task.answer_schema,
    )
    return start, reply


async def _prompt_above(node_id: str, database: Database) -> str:
    """What a person said last before this point."""
    for node in reversed(await database.nodes.recent(node_id)):
        if node.is_from_person:
            return "\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))
    return ""
