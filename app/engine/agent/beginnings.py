"""How a task begins: with a message, as another try of a reply, or again where it was interrupted.

Whether its agent is free is the runner's business: it claims the agent before it asks for any of these.
"""

from dataclasses import dataclass, replace

import msgspec

from app.engine.agent.assembly import Assembly
from app.engine.agent.branch import Branch
from app.engine.agent.company import Company, company_of
from app.engine.agent.context import message_of, user_message
from app.engine.agent.open_turn import OpenTurn, last_reply, past_of
from app.engine.agent.opening import new_task, publish_message, publish_task
from app.engine.agent.place import Place, make_workspace, personality_of, with_personality
from app.engine.agent.prompting import text as prompt_text
from app.engine.agent.reach import read_branch, recent_path
from app.engine.agent.task import moved
from app.engine.agent.task_run import TaskRun
from app.engine.errors import IllegalMove, InvalidParams, NotFound
from app.engine.messages import AssistantMessage, ModelMessage, UserMessage, user_text
from app.engine.models.base import ChatModel
from app.engine.models.router import ModelRouter
from app.protocol.agents import Agent
from app.protocol.conversations import Node
from app.protocol.events import TaskUpdate
from app.protocol.tasks import Task, TaskStartParams


@dataclass(frozen=True, slots=True)
class Beginning:
    """A task that is on record and ready to run: from a message, in an open turn, or from what the branch holds."""

    run: TaskRun
    opening: UserMessage | OpenTurn | None


class Beginnings:
    def __init__(self, assembly: Assembly, models: ModelRouter) -> None:
        self._assembly = assembly
        self._models = models

    async def new(self, params: TaskStartParams, place: Place, agent: Agent, *, is_again: bool = False) -> Beginning:
        """With a message, after the agent's head or beside the message that it takes the place of.

        `is_again` where the address of the model is not a person's of now but that of another task.
        """
        place = replace(place, agent=await with_personality(agent, place.personality, self._assembly.database))
        after = await self._before_sibling(params) if params.sibling_of is not None else agent.head_id
        task = await new_task(params, place, self._assembly.settings.values, self._models)
        opened = self._models.open_again if is_again else self._models.open
        model = opened(task.model, task.api_base, params.api_key)
        attachments = await self._assembly.attachments.accept(params.attachments)
        message = self._assembly.attachments.said(task.prompt, attachments)
        company = await company_of(place.agent, self._assembly.database)
        history = await self._history(after, place, company)
        await make_workspace(place.conversation)
        branch = publish_task(task, place, self._assembly.log)
        branch.position = branch.position.advance(after)
        has_price = self._models.has_price(task.model)
        publish_message(task, message, branch, place, has_price=has_price)
        await self._assembly.log.flush()
        personality = company.briefed(place.personality)
        run = self._assembly.build(task, branch, personality, model, history, 1, company.heard)
        return Beginning(run, user_message(message))

    async def another_try(self, params: TaskStartParams, reply: Node, place: Place, agent: Agent) -> Beginning:
        """Beside a reply: the head goes to what that reply answered, and no message is added.

        A budget that cannot be kept is not taken over.
        """
        assert reply.parent_id is not None, "a reply follows something"
        place = replace(place, agent=await with_personality(agent, place.personality, self._assembly.database))
        task = await new_task(params, place, self._assembly.settings.values, self._models)
        model = self._models.open_again(task.model, task.api_base, params.api_key)
        if not self._models.has_price(task.model):  # a remark about it would stand between the reply and its sibling
            task = msgspec.structs.replace(task, budget_usd=None)
        return await self._begun(task, place, model, reply.parent_id)

    async def without_message(
        self,
        params: TaskStartParams,
        place: Place,
        agent: Agent,
        *,
        summarises: bool = False,
        follows: str | None = None,
    ) -> Beginning:
        """Where the agent stands, after what was said last: it answers that, or summarises what it has read."""
        assert agent.head_id is not None, "somebody has spoken"
        place = replace(place, agent=agent)
        task = await new_task(params, place, self._assembly.settings.values, self._models)
        model = self._models.open_again(task.model, task.api_base, params.api_key)
        task = msgspec.structs.replace(task, summarises=summarises, follows=follows)
        return await self._begun(task, place, model, agent.head_id)

    async def _begun(self, task: Task, place: Place, model: ChatModel, after: str) -> Beginning:
        company = await company_of(place.agent, self._assembly.database)
        history = await self._history(after, place, company)
        await make_workspace(place.conversation)
        branch = publish_task(task, place, self._assembly.log)
        branch.set_head(after, branch.agent.version)
        await self._assembly.log.flush()
        personality = company.briefed(place.personality)
        run = self._assembly.build(task, branch, personality, model, history, 0, company.heard)
        return Beginning(run, _going_on(history))

    async def resumed(self, task: Task, agent: Agent) -> Beginning:
        """Where it was interrupted, from its last finished step."""
        personality = await personality_of(None, agent, self._assembly.database)
        model = self._models.open_again(task.model, task.api_base)
        conversation = await self._assembly.database.conversations.get(task.conversation_id)
        assert conversation is not None, "it holds the task"
        company = await company_of(agent, self._assembly.database)
        kept = conversation.kept
        path = await recent_path(self._assembly.database.nodes, agent.head_id, kept)
        personality = company.briefed(personality)
        await self._check_branch(task, path)
        turn = await self._open_turn(task, path, kept, company)
        task = msgspec.structs.replace(moved(task, "running"), activity="resumed", own_key=False)
        branch = Branch(agent, self._assembly.log)
        if turn is None:
            self._assembly.desk.leave(task.id)
        history = turn.history if turn is not None else await read_branch(path, kept, company.heard)
        stored = turn.stored if turn is not None else 0
        run = self._assembly.build(task, branch, personality, model, history, stored, company.heard, turn)
        # On record before the answer: who follows the task next must not find it interrupted.
        self._assembly.log.publish(TaskUpdate(task=task))
        await self._assembly.log.flush()
        return Beginning(run, turn if turn is not None else _going_on(history))

    async def _open_turn(
        self, task: Task, path: tuple[Node, ...], kept: tuple[str, ...], company: Company
    ) -> OpenTurn | None:
        """The turn it was in, if that has its reply. What was asked in it is asked again only if it was not settled."""
        at = last_reply(path, task.id)
        if at is None:
            return None
        reply, history = message_of(path[at]), await read_branch(path[:at], kept, company.heard)
        if not isinstance(reply, AssistantMessage) or not history or history[-1].role == "assistant":
            return None
        database, results = self._assembly.database, [node for node in path[at:] if node.role == "tool_result"]
        past = past_of(results, await database.executions.of_task(task.id), path[at].turn)
        asks = await database.asks.page(task_ids=(task.id,))
        self._assembly.desk.resume(task.id, (ask for ask in asks if ask.created_at >= path[at].created_at))
        return OpenTurn(reply, history, past, stored=1 + len(results))

    async def _history(self, leaf_id: str | None, place: Place, company: Company) -> tuple[ModelMessage, ...]:
        kept = place.conversation.kept
        path = await recent_path(self._assembly.database.nodes, leaf_id, kept)
        return await read_branch(path, kept, company.heard)

    async def _before_sibling(self, params: TaskStartParams) -> str | None:
        assert params.sibling_of is not None
        node = await self._assembly.database.nodes.get(params.sibling_of)
        if node is None or node.conversation_id != params.conversation_id:
            raise NotFound(f"There is no node {params.sibling_of!r} in this conversation.")
        if node.role != "user":
            raise InvalidParams(
                "Only a message of a person can be sent again in another form. To retry a reply there is task/retry."
            )
        return node.parent_id

    async def _check_branch(self, task: Task, path: tuple[Node, ...]) -> None:
        """`IllegalMove` where the task has worked on another branch than the one the agent stands on now."""
        if any(node.task_id == task.id for node in path):
            return
        outline = await self._assembly.database.trees.outline(task.conversation_id)
        if any(node.task_id == task.id for node in outline.nodes):
            raise IllegalMove("The agent is on another branch now. Go back to the branch of this task, then resume it.")


def _going_on(history: tuple[ModelMessage, ...]) -> UserMessage | None:
    """A model cannot go on from its own words: after a reply that was cut it is told to."""
    return user_text(prompt_text("resume")) if history and history[-1].role == "assistant" else None
