"""The place of the find bar above a transcript: most conversations are never searched."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout

from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.session import EngineSession
from errand.window.theme.theme import Theme
from errand.window.transcript.view import TranscriptView

if TYPE_CHECKING:
    from errand.window.views.conversation.find_bar import FindBarView


class FindBarSlot(QVBoxLayout):
    """Empty until `open`, which makes the bar."""

    def __init__(
        self, store: ConversationStore, session: EngineSession, transcript: TranscriptView, theme: Theme
    ) -> None:
        super().__init__()
        self._store = store
        self._session = session
        self._transcript = transcript
        self._theme = theme
        self._bar: FindBarView | None = None

    @property
    def is_open(self) -> bool:
        return self._bar is not None and self._bar.isVisible()

    def open(self) -> None:
        """Open the bar with the focus in its field."""
        if self._bar is None:
            self._bar = self._make_bar()
        self._bar.open()

    def step(self, *, forward: bool) -> None:
        """Go to the next or previous hit; opens the bar if it is closed."""
        if self._bar is None or not self._bar.isVisible():
            self.open()
        elif forward:
            self._bar.search.next()
        else:
            self._bar.search.previous()

    def close(self) -> bool:
        """Close the bar; False if it is not open."""
        if self._bar is None or not self._bar.isVisible():
            return False
        self._bar.close_search()
        return True

    def _make_bar(self) -> "FindBarView":
        from errand.window.rows.registry import row_text
        from errand.window.stores.conversation.find import FindStore
        from errand.window.views.conversation.find_bar import FindBarView

        search = FindStore(self._store, self._session, row_text)
        search.failed.connect(self._store.failed)
        bar = FindBarView(search, self._transcript, self._theme)
        self.addWidget(bar)
        return bar
