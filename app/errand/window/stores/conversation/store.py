"""One open conversation: its rows, kept current, and its parts (agents, commands, queue). Start here."""

from PySide6.QtCore import Signal

from errand.client.conversation.followed_branch import FollowedBranch
from errand.client.conversation.paging import SettledLoader
from errand.client.conversation.task_states import is_working
from errand.protocol.agents import Agent
from errand.protocol.asks import Ask
from errand.protocol.conversations import Conversation, ConversationNodesResult, Node
from errand.protocol.engine import Snapshot
from errand.protocol.tasks.task import Task
from errand.text.translation import tr
from errand.window.stores.asks import AskStore
from errand.window.stores.conversation.agents import AgentStore
from errand.window.stores.conversation.background import BackgroundStore
from errand.window.stores.conversation.branch_commands import BranchCommands, ContextCommands
from errand.window.stores.conversation.commands import TaskCommands
from errand.window.stores.conversation.paging import OlderPageLoader, RowSeeker
from errand.window.stores.conversation.queue import QueueStore
from errand.window.stores.conversation.recall import RecallCommands
from errand.window.stores.conversation.row_store import RowStore
from errand.window.stores.pictures import PictureStore
from errand.window.stores.session import EngineSession
from errand.window.stores.tasks import TaskStore

NEW_TITLE = tr("New conversation")

_PAGE = 50
_SEEKING_PAGE = 500  # the engine's maximum


class ConversationStore(RowStore):
    """An open conversation. Made by `Stores.open`.

    `taskUpdate` is emitted with each changed `Task`, and with the shown one, or None, when another branch is shown;
    `taskMessage` with each `Node` that was added or changed. `followed` is emitted when the events begin to arrive,
    then `is_followed` is true. `reached` and `missed` answer `seeker.seek`. `edit_started` has the row of a message
    that became an edit field. `failed` has the text of an error. `source_requested` has the conversation and the node
    that a person wants to see, `forget_requested` a node to be forgotten. `providers_requested` asks for the settings
    of models and keys.
    """

    taskUpdate = Signal(object)
    taskMessage = Signal(object)
    followed = Signal()
    title_changed = Signal()
    approve_changed = Signal()
    remembers_changed = Signal()
    loaded = Signal()
    reached = Signal(int)
    missed = Signal()
    edit_started = Signal(int)
    edit_ended = Signal()
    source_requested = Signal(str, str)
    forget_requested = Signal(str)
    providers_requested = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession, tasks: TaskStore, asks: AskStore, conversation_id: str | None) -> None:
        super().__init__(is_current=conversation_id is None)
        self.agents = AgentStore(session)
        self.commands = TaskCommands(session, tasks, asks, self.agents, self.branch, conversation_id)
        self.branches = BranchCommands(session, self.agents, self.commands, self.branch)
        self.context = ContextCommands(session, self.agents, self.commands)
        self.recall = RecallCommands(session, self.commands)
        self.queue = QueueStore(session, self.commands)
        self.background = BackgroundStore(session)
        self.pictures = PictureStore(session)
        self.conversation: Conversation | None = None
        self._session = session
        self._tasks = tasks
        self._followed = FollowedBranch(self.branch, self.agents, tasks)
        self.asks = asks
        self._settled_loader = SettledLoader(session, self.branch)
        self._older_loader = OlderPageLoader(session, self.branch, self._settled_loader)
        self._is_loaded = conversation_id is None
        self.is_followed = False
        self.seeker = RowSeeker(self, self.branches, self.load_older, self.reached.emit, self.missed.emit)
        self._older_loader.loaded.connect(self._on_older_loaded)
        self._older_loader.outdated.connect(self.seeker.on_page_loaded)
        self._older_loader.failed.connect(self._on_older_failed)
        self.commands.stored.connect(self.load)
        asks.changed.connect(self._on_asks_changed)
        self.commands.failed.connect(self.failed)
        self.commands.failed.connect(self.seeker.on_command_failed)
        self.branches.edit_requested.connect(self._on_edit_requested)
        self.branches.lock_changed.connect(self._on_lock_changed)
        self.agents.changed.connect(self._on_agents_changed)
        self.agents.selection_changed.connect(self.load)
        self.agents.failed.connect(self.failed)
        self.background.failed.connect(self.failed)

    @property
    def conversation_id(self) -> str | None:
        """None until the first task of a new conversation is started."""
        return self.commands.conversation_id

    @property
    def is_loaded(self) -> bool:
        """True once the first rows are loaded; then `loaded` is emitted."""
        return self._is_loaded

    @property
    def title(self) -> str:
        return self.conversation.title if self.conversation is not None else NEW_TITLE

    @property
    def task(self) -> Task | None:
        """The running task of the selected agent; else the last task of the shown branch."""
        newest = self.commands.task
        return newest if newest is not None and is_working(newest) else self.branch.last_task() or newest

    @property
    def next_ask(self) -> Ask | None:
        """The first open ask; asks of the selected task come first."""
        task = self.commands.task
        own = [ask for ask in self.commands.waiting if task is not None and ask.task_id == task.id]
        return next(iter((*own, *self.commands.waiting)), None)

    def show_task(self, task_id: str) -> bool:
        """Select the agent of this task; False if it is selected already."""
        task, selected = self._tasks.get(task_id), self.agents.shown
        if task is None or selected is None or task.agent_id == selected.id or self.agents.get(task.agent_id) is None:
            return False
        self.agents.show_agent(task.agent_id)
        return True

    def load_older(self) -> None:
        """Load the page above the oldest row, if there is one."""
        if self.conversation_id is not None:
            self._older_loader.load(self.conversation_id, _SEEKING_PAGE if self.seeker.is_seeking else _PAGE)

    def load(self) -> None:
        """Subscribe to the conversation, initially or after events were lost."""
        if self.conversation_id is not None:
            self._session.spawn(self._load(self.conversation_id), self.failed.emit)

    def close(self) -> None:
        """Called by `Stores.close`; the store cannot be used afterwards."""
        self.asks.changed.disconnect(self._on_asks_changed)

    def put_conversation(self, conversation: Conversation) -> None:
        old, before = self.title, self.conversation
        self.conversation = conversation
        self.agents.put_conversation(conversation)
        self.commands.put_conversation(conversation)
        self.context.put_conversation(conversation)
        if self.title != old:
            self.title_changed.emit()
        if before is None or conversation.approve != before.approve:
            self.approve_changed.emit()
        if before is None or conversation.remembers != before.remembers:
            self.remembers_changed.emit()

    def put_task(self, task: Task) -> None:
        self.touch(self.branch.put_task(task))
        self.branches.update_lock()
        self.queue.put_task(task)
        self.taskUpdate.emit(task)

    def put_node(self, node: Node) -> None:
        self.agents.note_node(node)
        self.touch(self.branch.put(node, joins=self._followed.continues(node)))
        if self.is_current and self._followed.is_left_by_node(node):
            self.load()
        self.taskMessage.emit(node)

    def _on_asks_changed(self) -> None:
        """Equal asks may have appeared or disappeared in any conversation."""
        for ask in self.commands.waiting:
            others = tuple(other for other in self.asks.equal_to(ask) if other.id != ask.id)
            self.touch(self.branch.asks.put_others(ask.id, others))

    def put_agent(self, agent: Agent) -> None:
        before = self.agents.get(agent.id)
        if self.agents.put(agent) and self._is_loaded and self._followed.is_left_by_head(agent, before):
            self.load()

    def _on_lock_changed(self) -> None:
        self.touch(self.branch.lock(bool(self.branches.locked)))

    def _on_agents_changed(self) -> None:
        self.touch(self.branch.set_speakers(self.agents.speakers))

    def _on_edit_requested(self, node_id: str | None) -> None:
        """Show a message as an edit field with its draft, or as a message again.

        While the branch is being loaded, none becomes a field: its row may not be shown.
        """
        if node_id is not None and not self.is_current:
            return
        self.touch(self.branch.edit(node_id))
        if node_id is None:
            self.edit_ended.emit()
        else:
            self.edit_started.emit(self.rows.index_of(node_id, 0))

    def _on_older_loaded(self, page: ConversationNodesResult) -> None:
        if self.is_current:
            self.prepend(page)
        self.seeker.on_page_loaded()

    def _on_older_failed(self, reason: str) -> None:
        self.seeker.cancel()
        self.failed.emit(reason)

    async def _load(self, conversation_id: str) -> None:
        result = await self._session.follow(conversation_id, self.agents.chosen_id)
        snapshot = result.snapshot
        assert snapshot is not None, "following without a place to go on from gives a snapshot"
        self._take_snapshot(snapshot)
        self.is_followed = True
        self.followed.emit()
        self.background.load(conversation_id)
        # The rows wait for past tasks and asks, so that they do not jump when these arrive.
        self.is_current = False
        try:
            await self._settled_loader.load(conversation_id, snapshot.nodes)
        finally:
            self._show()

    def _take_snapshot(self, snapshot: Snapshot) -> None:
        for conversation in snapshot.conversations:
            self.put_conversation(conversation)
        for task in snapshot.tasks:
            self._tasks.put(task)
            self.queue.put_task(task)
        self._followed.put_snapshot(snapshot)
        self.branches.update_lock()
        self.branch.show(snapshot.nodes, snapshot.has_more_nodes, snapshot.forks)

    def _show(self) -> None:
        if self._is_loaded and len(self.rows):
            self.replace()
            self.taskUpdate.emit(self.task)  # another branch has a different last task
        else:
            self._is_loaded = True
            self.fill(self.sections(self.branch.ids))
            self.loaded.emit()
        self.seeker.on_branch_shown()
