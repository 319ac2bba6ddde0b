"""The left side: search, what waits, what runs, and all conversations."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.protocol.conversations import ConversationSearchResult
from app.window.stores.stores import Stores
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.unread import UnreadStore
from app.window.views.conversation_list import ConversationListView
from app.window.views.inbox import InboxView
from app.window.views.search_results import SearchResultsView
from app.window.widgets.pulse import Pulse
from app.window.widgets.search_field import SearchField
from app.window.widgets.text_label import TextLabel


class SidebarView(QFrame):
    """Asks for a conversation with `opened`, for a node of one with `hit_opened`.

    `stop_asked` and `new_asked` are what they say.
    """

    opened = Signal(str)
    hit_opened = Signal(str, str)
    stop_asked = Signal(str)
    new_asked = Signal()

    def __init__(self, stores: Stores, unread: UnreadStore, theme: Theme, pulse: Pulse) -> None:
        super().__init__()
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._stores = stores
        self._theme = theme
        self.setMinimumWidth(theme.tokens.column // 3)
        self.search = SearchField(theme, "Search")
        self.new = push_button("New task")
        self.inbox = InboxView(stores, unread, theme, pulse)
        self.list = ConversationListView(stores.conversations, theme)
        self.results = SearchResultsView(theme)
        self._nothing = TextLabel(theme, "Your conversations will be listed here.", tone="muted", wrap=True)
        self._nothing.setMargin(theme.tokens.space_close)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._layers = QStackedWidget()
        self._lay_out()
        self._connect()
        self._on_theme_changed()
        self._on_conversations_changed()

    def focus_panes(self) -> tuple[QWidget, ...]:
        """Where F6 stops."""
        return (self.search, self.list)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        home = QWidget()
        below = QVBoxLayout(home)
        below.setContentsMargins(0, 0, 0, 0)
        below.setSpacing(tokens.space_close)
        below.addWidget(self.inbox)
        below.addWidget(self._nothing, 1)
        below.addWidget(self.list, 1)
        self._layers.addWidget(home)
        self._layers.addWidget(self.results)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.space_close, tokens.space_close, tokens.space_close, 0)
        column.setSpacing(tokens.space_close)
        top = QHBoxLayout()
        top.setSpacing(tokens.space_close)
        top.addWidget(self.search, 1)
        top.addWidget(self.new)
        column.addLayout(top)
        column.addWidget(self._layers, 1)

    def _connect(self) -> None:
        self.search.searched.connect(self._on_searched)
        self.search.returnPressed.connect(self.results.open_marked)
        self.new.clicked.connect(self.new_asked)
        self.inbox.opened.connect(self.opened)
        self.inbox.stop_asked.connect(self.stop_asked)
        self.list.opened.connect(self.opened)
        self.results.opened.connect(self.hit_opened)
        self._stores.conversations.found.connect(self._on_found)
        self._stores.conversations.reset.connect(self._on_conversations_changed)
        self._stores.conversations.changed.connect(self._on_conversations_changed)
        self._theme.changed.connect(self._on_theme_changed)

    def _on_searched(self, text: str) -> None:
        if text:
            self._stores.conversations.search(text)
        else:
            self._layers.setCurrentIndex(0)

    def _on_found(self, result: ConversationSearchResult) -> None:
        if self.search.text().strip():
            self.results.show_hits(result.hits)
            self._layers.setCurrentWidget(self.results)

    def _on_conversations_changed(self) -> None:
        is_empty = self._stores.conversations.count() == 0
        self._nothing.setVisible(is_empty)
        self.list.setVisible(not is_empty)

    def _on_theme_changed(self) -> None:
        self.new.setIcon(self._theme.icon("plus"))
