"""The start of a sub-agent: its agent beside the caller's, on a branch of its own, and its task with what is left."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import msgspec

from errand.engine.agent.history.participants import unused_name
from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.agent.run.limits import TaskLimits
from errand.engine.agent.tasks.approval_modes import inherited
from errand.engine.agent.tasks.task_target import TaskTarget, personality_of
from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.models.base import ChatModel
from errand.engine.storage.database import Database
from errand.engine.tools.context import SubAgentOrder
from errand.engine.tools.registry import LISTED_NAMES, common_tools, is_tool_name
from errand.protocol.agents import Agent, Personality
from errand.protocol.tasks.groups import Allowance
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task, replace_fields

_MAX_NAME_LENGTH = 40


@dataclass(frozen=True, slots=True)
class Calling:
    """The call that gives work to a sub-agent: of the task `parent`, with its model and what is left of its limits."""

    parent: Task
    call_id: str
    model: ChatModel
    limits: TaskLimits


def sub_task_id(parent: Task, call_id: str) -> str:
    """Return the same for the same call, so that a resumed task finds it. Call ids may repeat in another turn."""
    text = f"{parent.id}\n{parent.progress.step_count}\n{call_id}"
    return f"task_{hashlib.blake2b(text.encode(errors='replace'), digest_size=12).hexdigest()}"


async def sub_agent_target(
    order: SubAgentOrder, calling: Calling, database: Database
) -> tuple[TaskTarget, TaskStartParams, SubAgentOrder]:
    """Return the new agent, the params of its task, and the order with the tools that it gets.

    Raises `NotFound` for an unknown personality, `InvalidParams` for an unknown tool, `ConfigurationError` if the
    caller has none of the ordered tools.
    """
    parent, call_id = calling.parent, calling.call_id
    unknown = next((name for name in order.tools if not is_tool_name(name)), None)
    if unknown is not None:
        raise InvalidParams(f"There is no tool {unknown[:100]!r}; there are {', '.join(sorted(LISTED_NAMES))}.")
    conversation = await database.conversations.get(parent.conversation_id)
    caller = await database.agents.get(parent.agent_id)
    if conversation is None or caller is None:
        raise NotFound("The agent or its conversation was deleted.")
    personality = await _personality(order, caller, database)
    task_id = sub_task_id(parent, call_id)
    others = await database.agents.list(conversation.id)
    name = " ".join(order.title.replace("@", " ").split())[:_MAX_NAME_LENGTH].strip() or "Sub-agent"
    agent = Agent(
        id=task_id.replace("task_", "agent_", 1),
        conversation_id=conversation.id,
        personality_id=personality.id,
        name=unused_name(name, (other.name for other in others)),
        head_id=None,
        version=0,
        created_at=datetime.now(UTC),
        model=order.model,
        color=personality.color,
        beside=caller.beside or caller.id,
        called_by=parent.id,
        owner=conversation.owner,
    )
    is_same_model = order.model in ("", parent.request.model)
    params = TaskStartParams(
        prompt=order.prompt,
        task_id=task_id,
        conversation_id=conversation.id,
        model=order.model or parent.request.model,
        api_base=parent.request.api_base if is_same_model else None,
        approve=inherited(parent),
        attended=parent.options.attended,
        thinking_level=parent.request.thinking_level,
    )
    # What the caller does not have itself, it cannot give.
    tools = common_tools(parent.request.tools, (await personality_of(None, caller, database)).tools, order.tools)
    target = TaskTarget(conversation, agent, personality, author="engine", caller=caller.name)
    return target, params, replace(order, tools=tools)


def as_sub_task(task: Task, order: SubAgentOrder, calling: Calling) -> Task:
    """Return the record of the sub-agent's task."""
    parent, limits = calling.parent, calling.limits
    return replace_fields(
        task,
        parent_id=parent.id,
        depth=parent.origin.depth + 1,
        title=order.title,
        call_id=calling.call_id,
        call_turn=parent.progress.step_count,
        tools=order.tools,
        workspace=parent.request.workspace,
        network=parent.request.network,
        own_key=parent.request.own_key and task.request.model == parent.request.model,
        max_turns=limits.turns,
        budget_usd=limits.budget_usd,
        allowance=Allowance(
            turns=limits.turns, minutes=limits.minutes, budget_usd=limits.budget_usd, tokens=limits.tokens
        ),
    )


def with_sub_agent_prompt(task: Task, personality: Personality) -> Personality:
    """Return the personality of a sub-agent, told that it works for another agent."""
    if task.origin.parent_id is None:
        return personality
    own = personality.system_prompt or prompt_text("assistant")
    return msgspec.structs.replace(personality, system_prompt=f"{own}\n\n{prompt_text('sub_agent')}")


async def _personality(order: SubAgentOrder, caller: Agent, database: Database) -> Personality:
    if not order.personality:
        return await personality_of(None, caller, database)
    every = await database.personalities.all()
    name = order.personality.casefold()
    personality = next(
        (candidate for candidate in every if order.personality == candidate.id or candidate.name.casefold() == name),
        None,
    )
    if personality is None:
        names = ", ".join(candidate.name for candidate in every)
        raise NotFound(f"There is no personality {order.personality[:100]!r}. There are: {names}.")
    return personality
