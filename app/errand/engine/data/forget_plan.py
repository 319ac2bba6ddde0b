"""Plans what goes with a forgotten text: calls with their results, tasks of sub-agents, summaries, quotes, files."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from errand.engine.core.errors import AgentBusy, InvalidParams, NotFound
from errand.engine.data.scrubbing import Forgotten, Scrubber, arguments_of, calls_of, is_forgotten, texts_of
from errand.engine.storage.database import Database
from errand.engine.storage.records.executions import StoredExecution
from errand.engine.storage.records.forgetting import NodeTree
from errand.engine.storage.records.storage_stats import pictures_of
from errand.engine.storage.sql.statements import to_json
from errand.engine.tools.plain_text import without_hidden
from errand.protocol.agents import Agent
from errand.protocol.asks import Ask
from errand.protocol.blocks import SummaryBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Conversation, Node
from errand.protocol.memory import Fact
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths

_MAX_NODES = 1_000
# The tool that gives work to a sub-agent.
_SUB_AGENT = "task"


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """The changes to make. `nodes` are forgotten; of `replies` only calls are.

    `quoting` are nodes that quote a forgotten one, in any conversation. `executions` are the ids of the records of
    forgotten calls; `outputs` and `pictures` are absolute paths. `rules` counts the permission rules that a person made
    from a forgotten call: they stay. `facts` were proposed there, and nobody accepted them.
    """

    forgotten: Forgotten
    nodes: tuple[Node, ...]
    replies: tuple[Node, ...]
    summaries: tuple[Node, ...]
    quoting: tuple[Node, ...]
    conversations: tuple[Conversation, ...]
    tasks: tuple[Task, ...]
    agents: tuple[Agent, ...]
    asks: tuple[Ask, ...]
    rules: int
    executions: frozenset[str]
    outputs: frozenset[str]
    pictures: frozenset[str]
    facts: tuple[Fact, ...]
    scrubber: Scrubber

    @property
    def changed_nodes(self) -> tuple[Node, ...]:
        """All nodes in their new form, those that are forgotten last: until then the plan can be made again."""
        changed = ((node, self.scrubber.node(node)) for node in (*self.quoting, *self.summaries, *self.replies))
        forgotten = ((node, self.scrubber.node(node)) for node in self.nodes)
        return tuple(new for node, new in (*changed, *forgotten) if new != node)

    @property
    def changed_tasks(self) -> tuple[Task, ...]:
        return tuple(new for task in self.tasks if (new := self.scrubber.task(task)) != task)

    @property
    def changed_asks(self) -> tuple[Ask, ...]:
        """Settled ones: those of a task that has not ended are still needed."""
        settled = (ask for ask in self.asks if ask.status != "waiting")
        return tuple(new for ask in settled if (new := self.scrubber.ask(ask)) != ask)

    @property
    def changed_agents(self) -> tuple[Agent, ...]:
        """The agents with a higher version, as storage requires; nobody moves them meanwhile."""
        changed = ((agent, self.scrubber.agent(agent)) for agent in self.agents)
        return tuple(msgspec.structs.replace(new, version=new.version + 1) for old, new in changed if new != old)

    @property
    def changed_titles(self) -> tuple[Conversation, ...]:
        return tuple(
            new
            for conversation in self.conversations
            if (new := self.scrubber.conversation(conversation)) != conversation
        )

    @property
    def touched(self) -> frozenset[str]:
        """The ids of all conversations with a node that changes."""
        return self.forgotten.conversations | {node.conversation_id for node in self.quoting}


async def requested_nodes(database: Database, node_ids: Sequence[str]) -> tuple[Node, ...]:
    """Return the nodes. Raises `InvalidParams` for none or too many of them, `NotFound` if one does not exist."""
    if not 1 <= len(node_ids) <= _MAX_NODES:
        raise InvalidParams(f"nodeIds: from 1 to {_MAX_NODES:,} nodes.")
    nodes = await database.forgets.nodes(node_ids)
    existing_ids = {node.id for node in nodes}
    missing = next((node_id for node_id in node_ids if node_id not in existing_ids), None)
    if missing is not None:
        raise NotFound(
            f"There is no node {missing[:100]!r}. `errand search --json` and `errand export` show their ids."
        )
    return nodes


async def forget_plan(database: Database, paths: Paths, requested: Sequence[Node]) -> ForgetPlan:
    """Plan the forgetting of nodes. Raises `AgentBusy` if a node belongs to a task that has not ended."""
    conversation_ids = frozenset(node.conversation_id for node in requested)
    tasks = [task for key in sorted(conversation_ids) for task in await database.tasks.of_conversation(key)]
    chosen = await _Selection(database, tasks).select(requested)
    _check_ended((*chosen.complete.values(), *chosen.replies.values()), tasks)
    forgotten = await _with_summaries(database, chosen.forgotten(conversation_ids))
    scrubber = Scrubber(forgotten, database.redact)
    asks = await database.forgets.asks([task.id for task in tasks])
    asked = {ask.id for ask in asks if any((ask.task_id, call_id) in forgotten.asked for call_id in calls_of(ask))}
    executions = await _executions(database, chosen)
    conversations = [await database.conversations.get(key) for key in sorted(conversation_ids)]
    nodes = tuple(chosen.complete.values())
    return ForgetPlan(
        forgotten=forgotten,
        nodes=nodes,
        replies=tuple(chosen.replies.values()),
        summaries=await database.forgets.nodes(tuple(forgotten.summaries)),
        quoting=tuple([node async for node in database.forgets.quoting() if scrubber.quotes(node)]),
        conversations=tuple(conversation for conversation in conversations if conversation is not None),
        tasks=tuple(tasks),
        agents=tuple([agent for key in sorted(conversation_ids) for agent in await database.agents.list(key)]),
        asks=asks,
        rules=len([grant for grant in await database.grants.valid() if grant.ask_id in asked]),
        executions=frozenset(execution.started.execution_id for execution in executions if not _is_bare(execution)),
        outputs=await asyncio.to_thread(_outputs, paths, executions),
        pictures=frozenset(
            path for node in nodes for path in pictures_of(node.blocks) if _is_below(Path(path), paths.attachments, 2)
        ),
        facts=tuple(fact for fact in await database.facts.all() if _was_proposed_there(fact, forgotten)),
        scrubber=scrubber,
    )


def _was_proposed_there(fact: Fact, forgotten: Forgotten) -> bool:
    if fact.status != "proposed":
        return False  # a person has made it an own sentence
    of_call = fact.node_id in forgotten.calls and any(
        fact.text == " ".join(argument.split()) for argument in forgotten.arguments
    )
    # What a person said should bind later is proposed as it was said, also of a message before that node.
    quotes = fact.conversation_id in forgotten.conversations and any(
        fact.text in " ".join(without_hidden(text).split()) for text in forgotten.texts
    )
    return of_call or quotes or fact.node_id in forgotten.nodes


class _Selection:
    """The nodes to forget: `complete` ones, and `replies` that lose their `calls`."""

    def __init__(self, database: Database, tasks: Sequence[Task]) -> None:
        self._database = database
        self._tasks = tasks
        self._trees: dict[str, NodeTree] = {}
        self.complete: dict[str, Node] = {}
        self.replies: dict[str, Node] = {}
        self.calls: dict[str, set[str]] = {}

    async def select(self, requested: Iterable[Node]) -> "_Selection":
        waiting = list(requested)
        while waiting:
            new = {node.id: node for node in waiting if node.id not in self.complete}
            self.complete |= new
            waiting = await self._going_with(tuple(new.values()))
        self.replies = {node_id: node for node_id, node in self.replies.items() if node_id not in self.complete}
        return self

    def forgotten(self, conversation_ids: frozenset[str]) -> Forgotten:
        plans: dict[tuple[str, int], frozenset[int] | None] = {}
        asked: set[tuple[str, str]] = set()
        texts: list[str] = []
        arguments: list[str] = []
        for node in self.replies.values():
            calls = frozenset(self.calls[node.id])
            arguments += arguments_of(node.blocks, calls)
            if node.task_id is not None:
                asked.update((node.task_id, call_id) for call_id in calls)
                plans[node.task_id, node.turn] = _numbers(node, calls)
        for node in self.complete.values():
            texts += texts_of(node.blocks)
            arguments += arguments_of(node.blocks)
            if node.task_id is not None and node.role == "assistant":
                asked.update((node.task_id, call.call_id) for call in _calls(node))
                plans[node.task_id, node.turn] = None
        return Forgotten(
            nodes=frozenset(self.complete),
            summaries=frozenset(),
            calls={node_id: frozenset(self.calls[node_id]) for node_id in self.replies},
            conversations=conversation_ids,
            plans=plans,
            asked=frozenset(asked),
            texts=tuple(texts),
            arguments=tuple(arguments),
        )

    async def _going_with(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the results of their calls, the tasks that they gave, and the calls to which they belong."""
        related: list[Node] = []
        results = await self._results({node.id: node for node in nodes if _calls(node)})
        for node in nodes:
            if calls := _calls(node):
                related += await self._orders(node, {call.call_id for call in calls})
            elif node.task_from:
                related += await self._calling(node)
        return [*related, *results, *await self._calls_above([node for node in nodes if node.role == "tool_result"])]

    async def _calls_above(self, results: Sequence[Node]) -> list[Node]:
        """Select the calls of these results; return the tasks that the calls gave to sub-agents."""
        above = {node.id: (await self._tree(node)).reply_above(node.id) for node in results}
        replies = {
            reply_node.id: reply_node
            for reply_node in await self._database.forgets.nodes([*filter(None, above.values())])
        }
        orders: list[Node] = []
        for node in results:
            if (reply := replies.get(above[node.id] or "")) is not None:
                orders += await self._take_calls(reply, {block.call_id for block in _results(node)})
        return orders

    async def _take_calls(self, reply: Node, call_ids: set[str]) -> list[Node]:
        self.replies[reply.id] = reply
        self.calls.setdefault(reply.id, set()).update(call_ids)
        return await self._orders(reply, call_ids)

    async def _calling(self, order: Node) -> list[Node]:
        """Return the result of the call that gave a sub-agent this task; the call goes with it."""
        outline = await self._database.trees.outline(order.conversation_id, self._tasks)
        reply_id = next((node.parent_id for node in outline.nodes if node.id == order.id), None)
        child = next((task for task in self._tasks if task.id == order.task_id), None)
        reply = await self._database.nodes.get(reply_id) if reply_id is not None else None
        if reply is None or child is None:
            return []
        await self._take_calls(reply, {child.origin.call_id})
        below = await self._results({reply.id: reply})
        return [node for node in below if any(block.call_id == child.origin.call_id for block in _results(node))]

    async def _orders(self, reply: Node, call_ids: set[str]) -> list[Node]:
        """Return the first nodes of the sub-agents that these calls started."""
        if not any(call.tool == _SUB_AGENT and call.call_id in call_ids for call in _calls(reply)):
            return []
        children = {
            task.id
            for task in self._tasks
            if task.origin.parent_id == reply.task_id
            and task.origin.call_turn == reply.turn
            and task.origin.call_id in call_ids
        }
        orders = await self._database.forgets.orders(reply.conversation_id)
        return [node for node in orders if node.task_from and node.task_id in children]

    async def _results(self, replies: Mapping[str, Node]) -> tuple[Node, ...]:
        ids = [result_id for reply in replies.values() for result_id in (await self._tree(reply)).results(reply.id)]
        return await self._database.forgets.nodes(ids)

    async def _tree(self, node: Node) -> NodeTree:
        tree = self._trees.get(node.conversation_id)
        if tree is None:
            tree = self._trees[node.conversation_id] = await self._database.forgets.tree(node.conversation_id)
        return tree


async def _with_summaries(database: Database, forgotten: Forgotten) -> Forgotten:
    """Add the summaries of everything below the forgotten nodes: each is made from the one before."""
    gone = forgotten.nodes | frozenset(forgotten.calls)
    summaries: set[str] = set()
    for conversation_id in forgotten.conversations:
        nodes = await database.forgets.summaries(conversation_id)
        if not nodes:
            continue
        below = (await database.forgets.tree(conversation_id)).below(gone)
        summaries.update(
            node.id
            for node in nodes
            for block in node.blocks
            if isinstance(block, SummaryBlock) and block.until_id in below
        )
    return replace(forgotten, summaries=frozenset(summaries) - forgotten.nodes)


async def _executions(database: Database, chosen: _Selection) -> tuple[StoredExecution, ...]:
    """Return the records of forgotten calls, which follow their reply, or the result of the call before."""
    replies = {**chosen.replies, **{node.id: node for node in chosen.complete.values() if node.role == "assistant"}}
    turns = {(node.task_id, node.turn): node.id for node in replies.values() if node.task_id is not None}
    executions: list[StoredExecution] = []
    for task_id in sorted({task_id for task_id, _ in turns}):
        executions += [
            execution
            for execution in await database.executions.of_task(task_id)
            if (node_id := turns.get((task_id, execution.started.turn))) is not None
            and execution.started.call_id in chosen.calls.get(node_id, {execution.started.call_id})
        ]
    return tuple(executions)


def _outputs(paths: Paths, executions: Iterable[StoredExecution]) -> frozenset[str]:
    """Return the files in the folders of their tasks that these results name."""
    named: set[str] = set()
    for execution in executions:
        folder = paths.outputs / execution.started.task_id
        if execution.finished is None or folder.parent != paths.outputs or not folder.is_dir():
            continue
        result = f"{execution.finished.text} {to_json(execution.finished.details)}"
        named.update(str(file) for file in folder.iterdir() if str(file) in result)
    return frozenset(named)


def _is_below(path: Path, folder: Path, depth: int) -> bool:
    return len(path.parts) == len(folder.parts) + depth and path.is_relative_to(folder) and ".." not in path.parts


def _check_ended(nodes: Iterable[Node], tasks: Iterable[Task]) -> None:
    open_tasks = {task.id: task for task in tasks if task.outcome.ended_at is None}
    for node in nodes:
        task = open_tasks.get(node.task_id or "")
        if task is not None and not is_forgotten(node):
            raise AgentBusy(
                f"{node.id} belongs to the task {task.id}, which has not ended. Wait for it, or stop it "
                f"(errand stop {task.id}); then its text can be forgotten."
            )


def _is_bare(execution: StoredExecution) -> bool:
    """Return True if nothing is left to forget in it."""
    end = execution.finished
    return not execution.started.arguments and (end is None or "forgotten" in end.marks)


def _calls(node: Node) -> list[ToolCallBlock]:
    return [block for block in node.blocks if isinstance(block, ToolCallBlock)]


def _results(node: Node) -> list[ToolResultBlock]:
    return [block for block in node.blocks if isinstance(block, ToolResultBlock)]


def _numbers(node: Node, call_ids: frozenset[str]) -> frozenset[int]:
    """Return the places of these calls among the calls of a reply, as in its plan."""
    return frozenset(number for number, call in enumerate(_calls(node)) if call.call_id in call_ids)
