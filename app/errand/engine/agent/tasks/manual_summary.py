"""Summaries that a user requests or edits."""

import msgspec

from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.history.visible_history import recent_path, summary_of, turn_groups, visible_history
from errand.engine.agent.tasks.approval_modes import inherited
from errand.engine.agent.tasks.locks import AgentLocks
from errand.engine.core.errors import IllegalMove, InvalidParams, NotFound
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.protocol.agents import Agent, first_agent
from errand.protocol.context import ConversationSummariseParams, SummaryEditParams
from errand.protocol.conversations import Node
from errand.protocol.tasks.methods import TaskStartParams

PROMPT = "Summarise the conversation so far"
_MAX_TEXT_LENGTH = 100_000
# Fewest steps not yet summarised: the newest ones stay verbatim.
_MIN_STEPS = 3


async def summary_params(params: ConversationSummariseParams, database: Database) -> TaskStartParams:
    """Uses the model of the agent's last task. Raises `IllegalMove` while an interrupted task can be resumed."""
    if params.agent_id is not None:
        agent = await database.agents.get(params.agent_id)
    else:
        agent = first_agent(await database.agents.list(params.conversation_id))
    if agent is None or agent.conversation_id != params.conversation_id:
        raise NotFound("There is no such agent in this conversation.")
    if agent.head_id is None:
        raise IllegalMove("There is nothing to summarise yet.")
    await _check_idle(agent, database)
    if len(turn_groups(visible_history(await recent_path(database.nodes, agent.head_id, ())).rest)) < _MIN_STEPS:
        raise IllegalMove("There is nothing to summarise yet.")
    last = await database.tasks.last_of(agent)
    return TaskStartParams(
        prompt=PROMPT,
        task_id=params.task_id,
        conversation_id=params.conversation_id,
        agent_id=agent.id,
        model=last.request.model if last is not None else None,
        api_base=last.request.api_base if last is not None else None,
        approve=inherited(last) if last is not None else None,
    )


async def edit_summary(params: SummaryEditParams, log: EventLog, database: Database, locks: AgentLocks) -> Node:
    """Add a node that replaces a summary; refused while its agent is busy."""
    if not params.text.strip() or len(params.text) > _MAX_TEXT_LENGTH:
        raise InvalidParams(f"text: 1 to {_MAX_TEXT_LENGTH:,} characters.")
    node = await database.nodes.get(params.node_id)
    block = summary_of(node) if node is not None else None
    if node is None or block is None:
        raise NotFound(f"There is no summary {params.node_id!r}.")
    agent = await _agent_on(node, database)
    await locks.acquire(agent)
    try:
        branch = BranchWriter(await locks.current(agent), log)
        share = len(params.text) / max(1, len(block.text))
        changed = msgspec.structs.replace(
            block, text=params.text.strip(), tokens_after=round(block.tokens_after * share)
        )
        summary_node = branch.draft("system", "user", (changed,))
        branch.append(summary_node)
        branch.announce_head()
        await branch.save()
    finally:
        locks.release(agent.id)
    return summary_node


async def _agent_on(summary: Node, database: Database) -> Agent:
    """Return the idle agent whose branch contains this summary."""
    for agent in await database.agents.list(summary.conversation_id):
        if agent.head_id is not None and await database.nodes.on_path(agent.head_id, (summary.id,)):
            await _check_idle(agent, database)
            return agent
    raise IllegalMove("No agent is on the branch of this summary. Go to that branch, then change it.")


async def _check_idle(agent: Agent, database: Database) -> None:
    if any(
        task.agent_id == agent.id and task.activity.status == "interrupted" for task in await database.tasks.active()
    ):
        raise IllegalMove("A task of this agent was interrupted. Resume it or stop it first.")
