"""The record of a new task: checks the params, settles model and limits, publishes the first events."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.task_target import TaskTarget, publish_target
from errand.engine.core.addresses import check_address
from errand.engine.core.errors import ConfigurationError, InvalidParams
from errand.engine.core.ids import new_id
from errand.engine.core.setting_values import SettingValues
from errand.engine.event_log import EventLog
from errand.engine.models.catalog.configured import default_api_base
from errand.engine.models.router import ModelRouter
from errand.engine.tools.answer_schema import check_answer_schema
from errand.protocol.agents import Personality, ThinkingLevel
from errand.protocol.blocks import Block, NoticeBlock
from errand.protocol.events import TaskUpdate
from errand.protocol.notices import ReplyNotice
from errand.protocol.tasks.groups import TaskActivity, TaskBudget, TaskOptions, TaskRequest
from errand.protocol.tasks.methods import TaskStartParams
from errand.protocol.tasks.task import Task

NOTHING_CONFIGURED = (
    "No model is configured. Set a key such as OPENAI_API_KEY or ANTHROPIC_API_KEY, start a local model server "
    "(Ollama, LM Studio, llama.cpp, vLLM), or name a model with --model. `errand models` lists what was found; "
    "`errand tour` works without any."
)


_MAX_TURNS = 1_000_000
_MAX_USD = 1_000_000
_MAX_MINUTES = 1_000_000
_MAX_TOKENS = 1_000_000_000_000
_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


async def check_start_params(params: TaskStartParams) -> None:
    """Checks beyond the types; raises `InvalidParams`."""
    if not params.prompt.strip() and not params.attachments:
        raise InvalidParams("The prompt is empty. Say what to do.")
    if params.task_id is not None and not _TASK_ID.fullmatch(params.task_id):
        raise InvalidParams("taskId: 1 to 100 letters, digits, `-` and `_`.")  # used as a folder name
    if params.max_turns is not None and not 1 <= params.max_turns <= _MAX_TURNS:
        raise InvalidParams(f"maxTurns must be from 1 to {_MAX_TURNS:,}.")
    if params.budget_usd is not None and not 0 < params.budget_usd <= _MAX_USD:
        raise InvalidParams(f"budgetUsd must be more than 0, and {_MAX_USD:,} at most.")
    if params.max_minutes is not None and not 0 < params.max_minutes <= _MAX_MINUTES:
        raise InvalidParams(f"maxMinutes must be more than 0, and {_MAX_MINUTES:,} at most.")
    if params.max_tokens is not None and not 1 <= params.max_tokens <= _MAX_TOKENS:
        raise InvalidParams(f"maxTokens must be from 1 to {_MAX_TOKENS:,}.")
    if params.agent_id is not None and params.conversation_id is None:
        raise InvalidParams("agentId goes with the conversationId of its conversation.")
    if params.sibling_of is not None and params.conversation_id is None:
        raise InvalidParams("siblingOf goes with the conversationId of its conversation.")
    if params.api_base is not None:
        check_address(params.api_base)
    if params.answer_schema is not None:
        if params.mode == "chat":
            raise InvalidParams("answerSchema goes with the mode task: in chat there is nothing to complete.")
        await check_answer_schema(params.answer_schema)


async def new_task(params: TaskStartParams, target: TaskTarget, settings: SettingValues, models: ModelRouter) -> Task:
    """Return the record of a task about to start; nothing is stored yet.

    Raises `ConfigurationError` without a model.
    """
    own_model = target.agent.model or target.personality.model
    asked_for = params.model or (params.model_if_none if not own_model else None)
    model = asked_for or own_model or settings.default_model or await models.available.default_model()
    if not model:
        raise ConfigurationError(NOTHING_CONFIGURED)
    api_base = params.api_base if asked_for or params.model_if_none is None else None
    return Task(
        id=params.task_id or new_id("task"),
        conversation_id=target.conversation.id,
        owner=target.conversation.owner,
        agent_id=target.agent.id,
        started_at=datetime.now(UTC),
        request=TaskRequest(
            prompt=params.prompt,
            model=model,
            workspace=target.conversation.workspace,
            api_base=api_base or default_api_base(model, settings),
            answer_schema=params.answer_schema,
            network=params.network or target.conversation.network,
            thinking_level=params.thinking_level or _thinking_level(target.personality, settings),
            own_key=params.api_key is not None,
        ),
        activity=TaskActivity(status="running"),
        options=TaskOptions(
            mode="task" if params.answer_schema is not None else params.mode,
            approve=params.approve or target.conversation.approve,
            attended=params.attended,
        ),
        budget=TaskBudget(
            max_turns=params.max_turns or settings.max_turns,
            budget_usd=params.budget_usd or settings.budget_usd or None,
            max_minutes=params.max_minutes,
            max_tokens=params.max_tokens,
        ),
    )


async def publish_task(task: Task, target: TaskTarget, log: EventLog, changes: ConversationChanges) -> BranchWriter:
    """Publish conversation, agent and task, in the order that storage requires; returns the agent's branch."""
    await publish_target(target, log, changes)
    log.publish(TaskUpdate(task=task))
    return BranchWriter(target.agent, log)


def publish_message(
    task: Task,
    blocks: tuple[Block, ...],
    branch: BranchWriter,
    target: TaskTarget,
    about_model: Sequence[ReplyNotice] = (),
) -> None:
    """Add the task's message to the branch, followed by notices about the task, and by those about its model."""
    branch.append(branch.draft("user", target.author, blocks, task_id=task.id))
    notices = [NoticeBlock(kind="info", data=target.remark)] if target.remark is not None else []
    notices += [NoticeBlock(kind="model", data=data) for data in about_model]
    for notice in notices:
        branch.append(branch.draft("system", "engine", (notice,), task_id=task.id))
    branch.announce_head()


def _thinking_level(personality: Personality, settings: SettingValues) -> ThinkingLevel:
    """Return the personality's own level, or the level of the settings if it has none."""
    return settings.thinking_level if personality.thinking_level == "off" else personality.thinking_level
