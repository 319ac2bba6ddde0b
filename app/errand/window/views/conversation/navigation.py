"""Going to a part of the transcript: a node, a stored scroll position, or the request that waits for a person."""

from PySide6.QtCore import QObject, Signal

from errand.client.conversation.rows import AskRow
from errand.protocol.asks import Ask
from errand.text.translation import tr
from errand.window.stores.asks import AskStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.window_state import ScrollPosition
from errand.window.transcript.view import TranscriptView
from errand.window.views.composer.composer import ComposerView
from errand.window.views.composer.notices import NoticeSlotView
from errand.window.widgets.input.field_keys import holds_text

_NOT_HERE = tr("That message is in another branch. It can be shown when the agent has finished here.")


class RowNavigation(QObject):
    """Scrolls to nodes and to stored positions, once their rows are loaded. Emits `scrolled` when a person scrolls."""

    scrolled = Signal()

    def __init__(self, store: ConversationStore, transcript: TranscriptView, notices: NoticeSlotView) -> None:
        super().__init__(transcript)
        self._store = store
        self._transcript = transcript
        self._notices = notices
        self._pending: ScrollPosition | None = None
        store.reached.connect(self._on_reached)
        store.missed.connect(self._on_missed)
        transcript.verticalScrollBar().valueChanged.connect(self._on_bar_moved)

    @property
    def has_position(self) -> bool:
        """False until the stored rows are shown."""
        return self._store.is_loaded and not self._store.seeker.is_seeking

    @property
    def position(self) -> ScrollPosition | None:
        """The scroll position; None at the end."""
        position = self._transcript.scroll_position
        return ScrollPosition(*self._store.rows.section_of(position[0]), position[1]) if position is not None else None

    def go_to(self, node_id: str) -> None:
        """Show a node on any branch, loading pages if needed. Reports an error if it cannot be found."""
        self._pending = None
        self._store.seeker.seek(node_id, switches=True)

    def restore(self, position: ScrollPosition) -> None:
        """Restore a scroll position. Does nothing if its node no longer exists."""
        self._pending = position
        self._store.seeker.seek(position.node_id, position.number)

    def _on_reached(self, index: int) -> None:
        position, self._pending = self._pending, None
        self._transcript.to_row(index, position.offset if position is not None else 0)

    def _on_missed(self) -> None:
        position, self._pending = self._pending, None
        if position is None:
            self._notices.show_message(_NOT_HERE, "info")

    def _on_bar_moved(self) -> None:
        if not self._transcript.is_at_end:  # text that streams in at the end is not scrolling
            self.scrolled.emit()


class AskNavigation(QObject):
    """Goes to the request that waits for a person, also on the branch of a sub-agent, and back from there."""

    def __init__(
        self, store: ConversationStore, asks: AskStore, transcript: TranscriptView, composer: ComposerView
    ) -> None:
        super().__init__(transcript)
        self._store = store
        self._transcript = transcript
        self._composer = composer
        self._is_pending = False
        self._left_agent = ""  # whose branch was left for an ask of a sub-agent
        store.taskUpdate.connect(self._on_rows_changed)
        store.loaded.connect(self._on_rows_changed)
        asks.changed.connect(self._return_to_agent)
        composer.choice_entered.connect(self._on_choice_entered)

    def go_to_next(self) -> None:
        """Scroll to the open ask and focus it, now or once it is loaded.

        The focus stays in a text that was begun meanwhile.
        """
        store = self._store
        ask, before = store.next_ask, store.agents.shown
        switches_agent = ask is not None and store.is_loaded and store.show_task(ask.task_id)
        if switches_agent and before is not None and before.called_by is None:
            self._left_agent = before.id
        row = self._row_of(ask) if ask is not None and not switches_agent else None
        was_pending = self._is_pending
        self._is_pending = not store.is_loaded or (ask is not None and row is None)
        if row is not None and was_pending and holds_text(self._transcript.window().focusWidget()):
            self._transcript.ensure_row_visible(row)
        elif row is not None:
            self._transcript.focus_row(row)

    def allow_once(self) -> None:
        """Allow the open approval, with the focus on its card or in the message field while that is empty.

        Otherwise it is only shown: nobody should allow what they have not seen, or while they write something.
        """
        approval = next((ask for ask in self._store.commands.waiting if ask.kind == "approval"), None)
        row = self._row_of(approval) if approval is not None else None
        if approval is None or row is None:
            return
        focused = self._transcript.window().focusWidget()
        is_in_field = focused is self._composer.field
        can_allow = not self._composer.has_content if is_in_field else self._transcript.is_focused(row)
        if can_allow and row in self._transcript.shown and not holds_text(focused):
            self._transcript.choose(row, 1)
        elif holds_text(focused) or self._composer.has_content:
            self._transcript.ensure_row_visible(row)
        else:
            self._transcript.focus_row(row)

    def _return_to_agent(self) -> None:
        """Show the branch again that was left for an ask of a sub-agent, once nothing waits for a person there."""
        shown_agent = self._store.agents.shown
        if not self._left_agent or shown_agent is None:
            return
        waiting = {ask.task_id for ask in self._store.commands.waiting}
        task = self._store.commands.task
        if shown_agent.called_by is None:
            self._left_agent = ""
        elif task is None or task.id not in waiting:
            left, self._left_agent = self._left_agent, ""
            self._store.agents.show_agent(left)

    def _row_of(self, ask: Ask) -> int | None:
        """Return the row of an ask, usually near the end."""
        for index in reversed(range(self._store.count())):
            row = self._store.row(index)
            if isinstance(row, AskRow) and row.ask.id == ask.id:
                return index
        return None

    def _on_rows_changed(self) -> None:
        if self._is_pending and self._store.is_loaded:
            self.go_to_next()

    def _on_choice_entered(self, number: int) -> None:
        """An ask that is not visible is only shown: nobody should answer what they have not seen."""
        ask = self._store.commands.question or self._store.next_ask
        row = self._row_of(ask) if ask is not None else None
        if row is not None and self._transcript.choose(row, number):
            self._composer.set_text("")
        else:
            self.go_to_next()
            self._composer.setFocus()
