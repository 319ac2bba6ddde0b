"""Forgets texts of nodes for good: in records, events, the search, files and memory; completed after a crash.

What it cannot reach: copies of the database made before, files of the workspace and what is stored to undo changes in
them, rules that a person made from a call, exports, other machines and the model's provider.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from errand.engine.agent.run.memory.recall import RunningRecalls
from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.core.errors import AgentBusy, EngineError, NotFound
from errand.engine.data import conversation_files
from errand.engine.data.forget_plan import ForgetPlan, forget_plan, requested_nodes
from errand.engine.data.remover import ConversationLocks
from errand.engine.data.scrubbing import is_forgotten
from errand.engine.event_log import EventLog
from errand.engine.memory.facts import Facts
from errand.engine.storage.database import Database
from errand.engine.storage.records import forgetting, memory_log
from errand.engine.storage.records.conversation_tree import first_words
from errand.engine.storage.records.executions import ExecutionEnd, ExecutionStart
from errand.engine.storage.records.forgetting import Forget, StoredResult
from errand.engine.storage.sql.statements import Write, from_json, to_json
from errand.engine.tools.sessions import ToolSessions
from errand.engine.tools.shell.background import Background, BackgroundCommands
from errand.protocol.blocks import MemoryRole
from errand.protocol.conversations import Node, Role
from errand.protocol.events import (
    AgentUpdate,
    AskUpdate,
    BackgroundUpdate,
    LogRecord,
    TaskMessage,
    TaskUpdate,
)
from errand.protocol.memory import ForgettableNode, MemoryForgetResult, MemoryPreviewForgetResult
from errand.protocol.methods import METHODS
from errand.system.database_file import list_copies
from errand.system.paths import Paths

_log = logging.getLogger(__name__)

_MAX_LISTED_NODES = 100
# Nodes published at once; then others have their turn.
_AT_ONCE = 50


class MemoryEntries(Protocol):
    """The index of memory, which is derived from the nodes."""

    async def forget_entries(self, node_ids: Sequence[str]) -> int:
        """Remove the entries of these nodes, with their vectors; returns their number."""
        ...

    async def wait_removed(self) -> int:
        """Wait a little until their vectors are gone from the disk too; returns of how many entries they may not be."""
        ...


class Forgetter:
    """One forgetting at a time. Make one for an engine."""

    def __init__(
        self,
        log: EventLog,
        database: Database,
        changes: ConversationChanges,
        locks: ConversationLocks,
        memory: MemoryEntries,
        facts: Facts,
        sessions: ToolSessions,
        recalls: RunningRecalls,
        paths: Paths,
    ) -> None:
        self._log = log
        self._database = database
        self._changes = changes
        self._locks = locks
        self._memory = memory
        self._facts = facts
        self._sessions = sessions
        self._recalls = recalls
        self._paths = paths
        self._turn = asyncio.Lock()

    async def preview(self, node_ids: Sequence[str]) -> MemoryPreviewForgetResult:
        """Return what `forget` would remove. Raises the same errors."""
        requested = await requested_nodes(self._database, node_ids)
        plan = await forget_plan(self._database, self._paths, requested)
        visible = [node for node in plan.nodes if not is_forgotten(node)][:_MAX_LISTED_NODES]
        titles = {conversation.id: conversation.title for conversation in plan.conversations}
        listed = tuple(_listed(node, titles[node.conversation_id], self._database.redact) for node in visible)
        return MemoryPreviewForgetResult(nodes=listed, removes=await self._result(plan, entries=0))

    async def forget(self, node_ids: Sequence[str], by: str) -> MemoryForgetResult:
        """Forget nodes. Raises `NotFound` for an unknown one, `AgentBusy` while an agent works at it or at a quote."""
        async with self._turn:
            return await self._forget(await requested_nodes(self._database, node_ids), by)

    async def sweep(self) -> None:
        """Run at start: completes what the end of an engine interrupted."""
        try:
            for forget in await self._database.forgets.pending():
                async with self._turn:
                    with suppress(AgentBusy):  # a task was started in it: the next start continues
                        await self._resume(forget)
        except (EngineError, OSError) as error:
            _log.warning("a text is not forgotten completely: %s", error)

    async def _resume(self, forget: Forget) -> None:
        nodes = await self._database.forgets.nodes(forget.node_ids)
        if nodes:
            await self._forget(nodes, forget.by)
        else:  # its conversation was deleted meanwhile
            self._database.journal.put(forgetting.done(forget.conversation_id))
            await self._database.journal.flush()

    async def _forget(self, requested: Sequence[Node], by: str) -> MemoryForgetResult:
        """Also completes what was begun before in the same conversations."""
        concerned = {node.conversation_id for node in requested}
        earlier = [begun for begun in await self._database.forgets.pending() if begun.conversation_id in concerned]
        unfinished = [node_id for begun in earlier for node_id in begun.node_ids]
        requested = (*requested, *await self._database.forgets.nodes(unfinished))
        async with AsyncExitStack() as stack:
            locked: set[str] = set()
            plan = await forget_plan(self._database, self._paths, requested)
            while new := self._touched(plan) - locked:  # it may have been quoted until its conversation was locked
                for conversation_id in sorted(new):
                    await self._lock(stack, conversation_id)
                    locked.add(conversation_id)
                plan = await forget_plan(self._database, self._paths, requested)
            self._check_background(plan)
            stack.enter_context(self._recalls.forgetting(plan.forgotten.conversations, plan.forgotten.quoted))
            files = plan.outputs | plan.pictures | frozenset(file for begun in earlier for file in begun.files)
            await self._begin(plan, files, by)
            self._drop_background(plan)
            for conversation in plan.conversations:  # before the events: each change of it is one that has the title
                await self._changes.change(conversation.id, plan.scrubber.conversation)
            await self._rewrite(plan)
            for fact in plan.facts:
                with suppress(NotFound):  # declined meanwhile
                    await self._facts.unpin(fact.id, by)
            await self._publish(plan)
        await self._delete_files(files)
        problem = await self._database.clear_remains()
        entries = await self._memory.forget_entries(sorted(plan.forgotten.quoted))
        result = msgspec.structs.replace(await self._result(plan, entries), problem=problem)
        await self._finish(plan, result, by, is_news=bool(earlier))
        return msgspec.structs.replace(result, to_remove=await self._memory.wait_removed())

    def _touched(self, plan: ForgetPlan) -> frozenset[str]:
        """Return the conversations that have the texts, also where a task has recalled but not stored one."""
        return plan.touched | self._recalls.conversations_with(plan.scrubber.says)

    async def _lock(self, stack: AsyncExitStack, conversation_id: str) -> None:
        try:
            await stack.enter_async_context(self._locks.lock_conversation(conversation_id))
        except AgentBusy as error:
            conversation = await self._database.conversations.get(conversation_id)
            title = conversation.title if conversation is not None else conversation_id
            raise AgentBusy(
                f"Nothing was forgotten: an agent works in “{title}”, where this text stands or was recalled. Wait for "
                "it, or stop it, then try again."
            ) from error

    def _background(self, plan: ForgetPlan) -> Iterator[tuple[BackgroundCommands, Background]]:
        """Yield the commands in the background that a forgotten call started, of which the engine still knows."""
        for conversation_id in sorted(plan.forgotten.conversations):
            commands = self._sessions.find(conversation_id, BackgroundCommands)
            for command in commands.commands() if commands is not None else ():
                if commands is not None and plan.scrubber.struct(command).command != command.command:
                    yield commands, commands.get(command.id)

    def _check_background(self, plan: ForgetPlan) -> None:
        for _, background in self._background(plan):
            if background.is_running:
                raise AgentBusy(
                    f"Nothing was forgotten: background command {background.record.id} of the conversation still runs. "
                    "Stop it first (errand background)."
                )

    def _drop_background(self, plan: ForgetPlan) -> None:
        for commands, background in tuple(self._background(plan)):
            commands.forget(background)
            self._log.publish(
                BackgroundUpdate(conversation_id=background.record.conversation_id, commands=commands.commands())
            )

    async def _begin(self, plan: ForgetPlan, files: frozenset[str], by: str) -> None:
        for conversation_id in sorted(plan.forgotten.conversations):
            ids = tuple(node.id for node in (*plan.nodes, *plan.summaries) if node.conversation_id == conversation_id)
            self._database.journal.put(forgetting.begin(Forget(conversation_id, ids, tuple(sorted(files)), by)))
        await self._database.journal.flush()

    async def _rewrite(self, plan: ForgetPlan) -> None:
        """Everything but what clients follow: that is published."""
        journal, scrubber = self._database.journal, plan.scrubber
        task_ids = {task.id for task in plan.tasks}
        await forgetting.rewrite_executions(journal, task_ids, _ExecutionChange(plan))
        for stored in await self._database.forgets.plans(task_ids):
            if (new := scrubber.struct(stored)) is not stored:
                journal.put(forgetting.save_plan(new))
        for answer in await self._database.forgets.results(plan.forgotten.conversations):
            if (result := _changed_result(plan, answer)) is not None:
                journal.put(forgetting.save_result(answer, result))
        await forgetting.rewrite_events(journal, plan.touched, _EventChange(plan))
        await journal.flush()

    async def _publish(self, plan: ForgetPlan) -> None:
        for ask in plan.changed_asks:
            self._log.publish(AskUpdate(ask=ask), also=(forgetting.save_ask(ask),))
        for agent in plan.changed_agents:
            self._log.publish(AgentUpdate(agent=agent))
        for task in plan.changed_tasks:
            self._log.publish(TaskUpdate(task=task))
        await self._log.flush()
        nodes = plan.changed_nodes
        for at in range(0, len(nodes), _AT_ONCE):
            for node in nodes[at : at + _AT_ONCE]:
                self._log.publish(TaskMessage(node=node))
            await self._log.flush()

    async def _delete_files(self, files: frozenset[str]) -> None:
        outputs = [Path(file) for file in files if Path(file).parent.parent == self._paths.outputs]
        pictures = [file for file in files if Path(file).parent.parent == self._paths.attachments]
        used = await self._database.storage_stats.pictures() if pictures else frozenset[str]()

        def delete() -> None:
            for output in outputs:
                with suppress(OSError):
                    output.unlink(missing_ok=True)
            conversation_files.delete_files(self._paths, pictures, used)

        await asyncio.to_thread(delete)

    async def _finish(self, plan: ForgetPlan, result: MemoryForgetResult, by: str, *, is_news: bool) -> None:
        """Note in the audit how much was forgotten, not what. Forgetting the same again is not noted."""
        conversations = sorted(plan.forgotten.conversations)
        done: list[Write] = [forgetting.done(conversation_id) for conversation_id in conversations]
        if result.nodes or is_news:
            done.append(memory_log.add("forgotten", by, f"{_counted(result)} in {', '.join(conversations)}"))
        self._database.journal.put(*done)
        await self._database.journal.flush()

    async def _result(self, plan: ForgetPlan, entries: int) -> MemoryForgetResult:
        return MemoryForgetResult(
            nodes=sum(not is_forgotten(node) for node in plan.nodes),
            entries=entries,
            executions=len(plan.executions),
            summaries=len(plan.summaries),
            recalls=len(plan.quoting),
            asks=len(plan.changed_asks),
            tasks=len(plan.changed_tasks),
            titles=len(plan.changed_titles),
            files=len(plan.outputs | plan.pictures),
            facts=len(plan.facts),
            rules=plan.rules,
            copies=await asyncio.to_thread(_copies, self._paths),
        )


class _ExecutionChange:
    def __init__(self, plan: ForgetPlan) -> None:
        self._plan = plan

    def __call__(self, body: str) -> str | None:
        is_start = "arguments" in msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        row = from_json(body, ExecutionStart) if is_start else from_json(body, ExecutionEnd)
        new = self._plan.scrubber.execution(row, self._plan.executions)
        return to_json(new) if new is not row else None


class _EventChange:
    def __init__(self, plan: ForgetPlan) -> None:
        self._plan = plan

    def __call__(self, body: str) -> str | None:
        record = from_json(body, LogRecord)
        new = self._plan.scrubber.struct(record)
        return to_json(new) if new is not record else None


def _changed_result(plan: ForgetPlan, stored: StoredResult) -> str | None:
    """Return the stored result of a command without what is forgotten; None if it had nothing of it."""
    method = next((known_method for known_method in METHODS if known_method.name == stored.method), None)
    if method is None:
        return "{}"  # of a command that is no more
    result = from_json(stored.result, method.result)
    new = plan.scrubber.struct(result)
    return to_json(new) if new is not result else None


def _copies(paths: Paths) -> tuple[str, ...]:
    """Return the copies of the database, also unfinished and replaced ones."""
    replaced = (file for file in paths.home.glob(f"{paths.database.name}*") if _is_replaced_copy(file.name))
    unfinished = paths.copies.glob(f"{paths.database.stem}-*.part")
    return tuple(map(str, (*list_copies(paths.database, paths.copies), *unfinished, *replaced)))


def _is_replaced_copy(name: str) -> bool:
    return not name.endswith(("errand.db", "-wal", "-shm", "-journal", ".newest"))


_ROLES: dict[Role, MemoryRole] = {"user": "user", "assistant": "agent", "tool_result": "tool", "system": "task"}


def _listed(node: Node, title: str, redact: Callable[[str], str]) -> ForgettableNode:
    return ForgettableNode(
        node_id=node.id,
        conversation_id=node.conversation_id,
        conversation_title=title,
        role=_ROLES[node.role],
        at=node.created_at,
        text=first_words(to_json(node), redact),
    )


def _counted(result: MemoryForgetResult) -> str:
    counts = (
        (result.nodes, "texts"),
        (result.entries, "entries of memory"),
        (result.executions, "tool calls"),
        (result.summaries, "summaries"),
        (result.recalls, "quotes"),
        (result.files, "files"),
        (result.facts, "proposed facts"),
    )
    return ", ".join(f"{count} {what}" for count, what in counts if count) or "the rest"
