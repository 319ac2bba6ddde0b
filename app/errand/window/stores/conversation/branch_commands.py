"""Commands on branches and on the context: edit, retry, fork, switch; keep a message, summarise."""

from collections.abc import Coroutine
from contextlib import suppress

from PySide6.QtCore import QObject, Signal, SignalInstance

from errand.client.conversation.branch import MAX_COMPARED, ComparedBranch, LoadedBranch
from errand.client.conversation.task_states import is_working
from errand.client.errors import CallError
from errand.protocol.agents import AGENT_SET_HEAD, Agent, AgentSetHeadParams
from errand.protocol.blocks import FileBlock, ImageBlock
from errand.protocol.context import (
    CONVERSATION_EDIT_SUMMARY,
    CONVERSATION_SUMMARISE,
    ConversationSummariseParams,
    SummaryEditParams,
)
from errand.protocol.conversations import (
    CONVERSATION_CHANGE,
    CONVERSATION_NODES,
    Conversation,
    ConversationChangeParams,
    ConversationNodesParams,
    Node,
)
from errand.protocol.tasks.methods import (
    TASK_GET,
    TASK_RETRY,
    TASK_START,
    TaskIdParams,
    TaskRetryParams,
    TaskStartParams,
)
from errand.text.translation import tr
from errand.window.stores.conversation.agents import AgentStore
from errand.window.stores.conversation.commands import TaskCommands
from errand.window.stores.session import EngineSession
from errand.window.stores.task_options import new_task_id

_PAGE = 500  # the engine's maximum

_LOCKED = tr("The agent is working here. Stop it or wait until it's done, then try again.")

_ONE_BRANCH = tr("There is nothing to compare yet. Ask several models, retry a reply or edit a message first.")
_AT_WORK = tr("The agent is working. Wait until it's done, or stop it.")
_NOTHING = tr("No messages yet.")


class BranchCommands(QObject):
    """Commands on branches. Only one runs at a time; another one is ignored meanwhile.

    Emits `forked` if the next message starts a new branch, `lock_changed` when `locked` changes, and `edit_requested`
    with the id of the message to edit inline, None to end editing, and `compare_requested` with a tuple of branches
    (`ComparedBranch`): the first four are to be shown side by side. `drafts` are texts typed into rows.
    `commands.failed` reports a refused command.
    """

    forked = Signal()
    compare_requested = Signal(object)
    edit_requested = Signal(object)
    _lock_changed = Signal()

    def __init__(
        self, session: EngineSession, agents: AgentStore, commands: TaskCommands, branch: LoadedBranch
    ) -> None:
        super().__init__()
        self._agents = agents
        self._branch = branch
        self._session = session
        self._commands = commands
        self.drafts: dict[str, str] = {}
        self._is_busy = False
        self._was_locked = ""

    @property
    def lock_changed(self) -> SignalInstance:
        return self._lock_changed

    @property
    def locked(self) -> str:
        """Why branching is disabled, as a sentence; empty if it is enabled."""
        task = self._commands.task
        return _LOCKED if task is not None and is_working(task) else ""

    @property
    def can_switch(self) -> bool:
        """False while `switch` would be refused wherever it goes."""
        return not self.locked or self._agents.has_sub_agents

    def update_lock(self) -> None:
        """The selected task changed, or another one was selected."""
        if self.locked != self._was_locked:
            self._was_locked = self.locked
            self._lock_changed.emit()

    def switch(self, node_id: str) -> None:
        """Show the newest branch through this node and move the head to its end.

        A sub-agent works on a branch of its own: for a node of it the sub-agent is selected, and no head moves.
        """
        if not self._agents.has_sub_agents:
            self._set_head(node_id, to_leaf=True)
        elif not self._is_busy:
            self._is_busy = True
            self._session.spawn(self._run(self._switch(node_id)), self._commands.failed.emit)

    def compare(self, node_ids: tuple[str, ...]) -> None:
        """Show the branches through these siblings side by side, and those of models that have not replied yet."""
        branches = self._branches_through(node_ids)
        if len(branches) > 1:
            self.compare_requested.emit(branches)
        else:
            self._commands.failed.emit(_ONE_BRANCH)

    def compare_newest(self) -> None:
        """Show the branches of the newest fork of the shown branch side by side."""
        conversation_id = self._commands.conversation_id
        side_heads = (self._agents.position(agent) for agent in self._agents.all if agent.beside is not None)
        siblings = self._branch.newest_fork({node_id for node_id in side_heads if node_id is not None})
        if len(self._branches_through(())) > 1:
            self.compare(())
        elif siblings or conversation_id is None or not self._branch.has_older:
            self.compare(siblings)
        else:
            self._session.spawn(self._compare_older(conversation_id), self._commands.failed.emit)

    def fork(self, node_id: str) -> None:
        """Move the head to this node."""
        self._set_head(node_id, to_leaf=False)

    def bring_agent(self, agent_id: str) -> None:
        """Move an agent's head to the end of the shown branch."""
        if self._branch.ids:
            self._agents.move_head(agent_id, self._branch.ids[-1])

    def retry(self, node_id: str, model: str | None = None) -> None:
        """Regenerate a reply as its sibling."""
        params = TaskRetryParams(node_id=node_id, task_id=new_task_id(), model=model)
        self._run_alone(self._retry(params))

    def edit(self, node_id: str) -> None:
        """Edit a message of the user inline."""
        self.edit_requested.emit(node_id)

    def edit_last(self) -> None:
        """Edit the user's newest message inline, if there is one."""
        node_id = self._branch.last_message()
        if node_id is not None:
            self.edit(node_id)

    def end_edit(self) -> None:
        self.edit_requested.emit(None)

    def resend(self, node: Node, text: str) -> None:
        """Send an edited message, with the files of the original, as its sibling."""
        files = tuple(block.path for block in node.blocks if isinstance(block, FileBlock | ImageBlock) and block.path)
        options = self._commands.options
        agent_id, conversation_id = self._agents.chosen_id, self._commands.conversation_id
        params = options.start(text, conversation_id, sibling_of=node.id, attachments=files, agent_id=agent_id)
        self._run_alone(self._resend(node.id, params))

    def _branches_through(self, node_ids: tuple[str, ...]) -> tuple[ComparedBranch, ...]:
        """Return the branches through these siblings, and those of agents that begin where they do; the shown one
        first four.

        Without siblings, the branches that begin at the end of the shown branch.
        """
        shown_id = next((node_id for node_id in node_ids if self._branch.holds(node_id)), None)
        parent_id = self._branch.node(shown_id).parent_id if shown_id is not None else None
        if self._branch.ids and shown_id is None and set(node_ids) <= set(self._branch.children_of_end):
            parent_id = self._branch.ids[-1]
        branches = [
            ComparedBranch(node_id, to_leaf=True, number=number) for number, node_id in enumerate(node_ids, start=1)
        ]
        selected = self._agents.shown
        for agent in self._agents.all:
            begins = agent.beside is not None or (agent == selected and bool(self.locked))
            if parent_id is not None and self._agents.position(agent) == parent_id and begins:
                branches.append(ComparedBranch(parent_id, agent.id))
        first = [branch for branch in branches if branch.leaf_id == shown_id and branch.agent_id is None]
        others = [branch for branch in branches if branch not in first]
        newest = others[len(first) - MAX_COMPARED :]
        chosen = [branch for branch in branches if branch in first or branch in newest]
        return (*chosen, *(branch for branch in branches if branch not in chosen))

    async def _compare_older(self, conversation_id: str) -> None:
        """Look for a fork above the loaded nodes."""
        before_id, leaf_id = self._branch.ids[0], self._branch.ids[-1]
        while True:
            params = ConversationNodesParams(
                conversation_id=conversation_id, leaf_id=leaf_id, before_id=before_id, limit=_PAGE
            )
            page = await self._session.call(CONVERSATION_NODES, params)
            ids = {node.id for node in page.nodes}
            for fork in reversed(page.forks):
                if len(fork.child_ids) > 1 and not ids.isdisjoint(fork.child_ids):
                    self.compare(fork.child_ids)
                    return
            if not page.has_more:
                self._commands.failed.emit(_ONE_BRANCH)
                return
            before_id = page.nodes[0].id

    def _set_head(self, node_id: str, *, to_leaf: bool) -> None:
        agent = self._agents.shown
        if agent is not None:
            params = AgentSetHeadParams(agent_id=agent.id, node_id=node_id, version=agent.version, to_leaf=to_leaf)
            self._run_alone(self._move(params))

    def _run_alone(self, work: Coroutine[None, None, None]) -> None:
        if self.locked or self._is_busy:
            work.close()
            if self.locked:
                self._commands.failed.emit(self.locked)
            return
        self._is_busy = True
        self._session.spawn(self._run(work), self._commands.failed.emit)

    async def _run(self, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        finally:
            self._is_busy = False

    async def _switch(self, node_id: str) -> None:
        conversation_id = self._commands.conversation_id
        owner = await self._sub_agent_of(node_id, conversation_id) if conversation_id is not None else None
        selected, active = self._agents.shown, self._agents.active
        agent = owner or (active if selected is not None and selected.called_by is not None else selected)
        if agent is None:
            return
        params = AgentSetHeadParams(agent_id=agent.id, node_id=node_id, version=agent.version, to_leaf=True)
        if selected is not None and agent.id == selected.id:
            if self.locked:
                self._commands.failed.emit(self.locked)
            else:
                await self._move(params)
            return
        if owner is None:
            with suppress(CallError):  # it is at work, most likely on the branch of this node
                await self._move(params)
        self._agents.show_agent(agent.id)

    async def _sub_agent_of(self, node_id: str, conversation_id: str) -> Agent | None:
        """Return the sub-agent whose task wrote this node."""
        params = ConversationNodesParams(conversation_id=conversation_id, leaf_id=node_id, limit=1)
        page = await self._session.call(CONVERSATION_NODES, params)
        task_id = page.nodes[-1].task_id
        if task_id is None:
            return None
        task = (await self._session.call(TASK_GET, TaskIdParams(task_id=task_id))).task
        agent = self._agents.get(task.agent_id)
        return agent if agent is not None and agent.called_by is not None else None

    async def _move(self, params: AgentSetHeadParams) -> None:
        await self._session.call(AGENT_SET_HEAD, params)
        if not params.to_leaf:
            self.forked.emit()

    async def _retry(self, params: TaskRetryParams) -> None:
        await self._commands.confirm_workspace()
        await self._session.call(TASK_RETRY, params)

    async def _resend(self, node_id: str, params: TaskStartParams) -> None:
        await self._commands.confirm_workspace()
        await self._session.call(TASK_START, params)
        self.drafts.pop(node_id, None)
        self.end_edit()


class ContextCommands(QObject):
    """Emits `kept_changed` when other messages are kept. `commands.failed` reports a refused command."""

    _kept_changed = Signal()

    def __init__(self, session: EngineSession, agents: AgentStore, commands: TaskCommands) -> None:
        super().__init__()
        self._session = session
        self._agents = agents
        self._commands = commands
        self._kept_ids: frozenset[str] = frozenset()

    @property
    def kept_changed(self) -> SignalInstance:
        return self._kept_changed

    def put_conversation(self, conversation: Conversation) -> None:
        kept_ids = frozenset(conversation.kept)
        if kept_ids != self._kept_ids:
            self._kept_ids = kept_ids
            self._kept_changed.emit()

    def is_kept(self, node_id: str) -> bool:
        return node_id in self._kept_ids

    def keep(self, node_id: str) -> None:
        if self._commands.conversation_id is not None:
            self._change(ConversationChangeParams(conversation_id=self._commands.conversation_id, keep_node_id=node_id))

    def release(self, node_id: str) -> None:
        if self._commands.conversation_id is not None:
            self._change(
                ConversationChangeParams(conversation_id=self._commands.conversation_id, release_node_id=node_id)
            )

    def change_summary(self, node_id: str, text: str) -> None:
        params = SummaryEditParams(node_id=node_id, text=text)
        self._session.send(CONVERSATION_EDIT_SUMMARY, params, self._commands.failed.emit)

    @property
    def locked(self) -> str:
        """Why summarising is disabled, as a sentence; empty if it is enabled."""
        if self._commands.conversation_id is None:
            return _NOTHING
        task = self._commands.task
        return _AT_WORK if task is not None and is_working(task) else ""

    def summarise(self) -> None:
        """Summarise the older part of the shown branch."""
        conversation_id, agent = self._commands.conversation_id, self._agents.shown
        if self.locked or conversation_id is None or agent is None:
            self._commands.failed.emit(self.locked or _NOTHING)
            return
        params = ConversationSummariseParams(conversation_id=conversation_id, agent_id=agent.id, task_id=new_task_id())
        self._session.spawn(self._summarise(params), self._commands.failed.emit)

    def _change(self, params: ConversationChangeParams) -> None:
        self._session.send(CONVERSATION_CHANGE, params, self._commands.failed.emit)

    async def _summarise(self, params: ConversationSummariseParams) -> None:
        await self._commands.confirm_workspace()
        await self._session.call(CONVERSATION_SUMMARISE, params)
