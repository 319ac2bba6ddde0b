"""Loads older pages for slots, and finds rows that are not loaded."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, Signal

from errand.client.conversation.branch import LoadedBranch
from errand.client.conversation.branch_rows import BranchRows
from errand.client.conversation.paging import SettledLoader, older_page
from errand.window.stores.conversation.branch_commands import BranchCommands
from errand.window.stores.session import EngineSession


class OlderPageLoader(QObject):
    """Emits `loaded` with a `ConversationNodesResult`, or `outdated` if the branch was reloaded meanwhile.

    One load at a time.

    Emits `failed` with a text if loading fails.
    """

    loaded = Signal(object)
    outdated = Signal()
    failed = Signal(str)

    def __init__(self, session: EngineSession, branch: LoadedBranch, settled_loader: SettledLoader) -> None:
        super().__init__()
        self._session = session
        self._branch = branch
        self._settled_loader = settled_loader
        self._is_loading = False

    def load(self, conversation_id: str, limit: int) -> None:
        """Load the next page, if there is one and none is being loaded."""
        if self._branch.has_older and not self._is_loading:
            self._is_loading = True
            self._session.spawn(self._load(conversation_id, limit), self.failed.emit)

    async def _load(self, conversation_id: str, limit: int) -> None:
        before = self._branch.ids[0]
        try:
            page = await older_page(self._session, self._branch, conversation_id, limit)
            await self._settled_loader.load(conversation_id, page.nodes)
        finally:
            self._is_loading = False
        if self._branch.ids[0] == before:
            self.loaded.emit(page)
        else:
            self.outdated.emit()


@dataclass(frozen=True, slots=True)
class _SeekTarget:
    """The wanted row: `number` counts the rows of its node. `switches` permits switching to another branch."""

    node_id: str
    number: int
    switches: bool
    is_switching: bool = False


class RowSeeker:
    """Finds one row at a time. Calls `reached` with its index, or `missed` if it does not exist."""

    def __init__(
        self,
        shown: BranchRows,
        branches: BranchCommands,
        load_older: Callable[[], None],
        reached: Callable[[int], None],
        missed: Callable[[], None],
    ) -> None:
        self._shown = shown
        self._branches = branches
        self._load_older = load_older
        self._reached = reached
        self._missed = missed
        self._target: _SeekTarget | None = None

    @property
    def is_seeking(self) -> bool:
        return self._target is not None

    def seek(self, node_id: str, number: int = 0, *, switches: bool = False) -> None:
        """Load and find a row of this node instead of any other.

        With `switches` the agent's head may move to another branch that contains the node.
        """
        self._target = _SeekTarget(node_id, number, switches)
        self.on_page_loaded()

    def on_page_loaded(self) -> None:
        """Continue; called whenever more rows are loaded."""
        target, branch = self._target, self._shown.branch
        if target is None or target.is_switching or not self._shown.is_current:
            return
        if branch.holds(target.node_id):
            self._target = None
            self._reached(self._shown.rows.index_of(branch.row_owner(target.node_id), target.number))
        elif branch.has_older:
            self._load_older()
        elif target.switches and self._branches.can_switch:
            self._target = _SeekTarget(target.node_id, target.number, switches=False, is_switching=True)
            self._branches.switch(target.node_id)
        else:
            self._target = None
            self._missed()

    def on_branch_shown(self) -> None:
        """Another branch is shown, possibly the one that was switched to."""
        if self._target is not None:
            self._target = replace(self._target, is_switching=False)
        self.on_page_loaded()

    def on_command_failed(self) -> None:
        """A command was refused: a requested branch switch will not happen."""
        if self._target is not None and self._target.is_switching:
            self._target = None

    def cancel(self) -> None:
        self._target = None
