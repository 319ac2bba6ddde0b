"""The sidebar: search field, inbox, conversation list, archive, banners, settings and help."""

from functools import cached_property, partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer, Signal
from PySide6.QtWidgets import QFrame, QMenu, QStackedWidget, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.protocol.conversations import Conversation, ConversationSearchResult
from errand.text.translation import tr, trn
from errand.window.stores.conversation_list import ConversationListStore
from errand.window.stores.memory.facts import FactStore
from errand.window.stores.stores import Stores
from errand.window.stores.tasks import UnreadStore
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.sidebar.conversation_list import ConversationListView
from errand.window.views.sidebar.conversation_marks import ConversationMarks
from errand.window.views.sidebar.inbox import InboxView
from errand.window.views.sidebar.search_results import OPERATORS, SearchResultsView
from errand.window.widgets.banner import BannerTone, BannerView
from errand.window.widgets.boxes import STRETCH, at_left, fill, hbox, set_hbox, set_vbox
from errand.window.widgets.buttons import IconButton, ShortcutToolTip
from errand.window.widgets.containers import FitContentScrollView
from errand.window.widgets.forms.search_field import SearchField
from errand.window.widgets.labels import TextLabel, one_line
from errand.window.widgets.pulse import PulseTimer

if TYPE_CHECKING:
    from errand.window.views.sidebar.archive import ArchiveView


_STAYS_MS = 15_000
"""Long enough to read it and to reach its button."""
_SHORT_TITLE, _SHORT_FACT = 32, 80  # characters

_NOTHING = tr("Your conversations appear here.")


class PassingBannerView(BannerView):
    """A notice about what was done. It is hidden after 15 s."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, is_stacked=True)
        self._leave = QTimer(self, singleShot=True, interval=_STAYS_MS)
        self._leave.timeout.connect(self.hide)

    def show_message(self, text: str, tone: BannerTone = "info", action: str = "", *, dismissible: bool = True) -> None:
        super().show_message(text, tone, action, dismissible=dismissible)
        self._leave.start()


class UndoBannerView(PassingBannerView):
    """`undo` works on when it is hidden, until the conversation is back."""

    def __init__(self, store: ConversationListStore, theme: Theme) -> None:
        super().__init__(theme)
        self._store = store
        self._conversation_id = ""
        self.action_clicked.connect(self.undo)
        store.archived_by_user.connect(self._on_put_away)

    def undo(self) -> None:
        """Undo the last archiving; does nothing if there was none."""
        conversation_id, self._conversation_id = self._conversation_id, ""
        if conversation_id:
            self.hide()
            self._store.archive(conversation_id, archived=False)

    def _on_put_away(self, conversation: Conversation) -> None:
        self._conversation_id = conversation.id
        self.show_message(tr("Archived"), action=tr("Undo"))
        self.setAccessibleName(tr("Archived: {title}").format(title=conversation.title))


def memory_text(conversation: Conversation) -> str:
    """Return a notice about what memory does with a conversation."""
    title = one_line(conversation.title, _SHORT_TITLE)
    match conversation.remembers, conversation.recalls:
        case True, True:
            return tr("“{title}” is included in memory and uses memory.").format(title=title)
        case True, False:
            return tr("“{title}” is included in memory, but doesn't use memory.").format(title=title)
        case False, True:
            return tr("“{title}” is left out of memory, but uses memory.").format(title=title)
        case _:
            return tr("“{title}” is left out of memory and doesn't use memory.").format(title=title)


class FactBannerView(BannerView):
    """Shown while a fact that an agent proposed waits for a person, until it is dismissed."""

    def __init__(self, facts: FactStore, theme: Theme) -> None:
        super().__init__(theme, is_stacked=True)
        self._facts = facts
        self._seen: frozenset[str] = frozenset()
        self.dismissed.connect(self._on_seen)
        self.action_clicked.connect(self._on_seen)
        facts.changed.connect(self._on_changed)

    def _on_seen(self) -> None:
        self._seen = frozenset(fact.id for fact in self._facts.proposed)
        self.hide()

    def _on_changed(self) -> None:
        waiting = [fact for fact in self._facts.proposed if fact.id not in self._seen]
        if not waiting:
            self.hide()
        elif len(waiting) == 1:
            text = one_line(escape_hidden_line(waiting[0].text), _SHORT_FACT)
            self.show_message(tr("Proposed fact: “{text}”").format(text=text), action=tr("Review"))
        else:
            text = trn("{n} fact proposed by agents", "{n} facts proposed by agents", len(waiting))
            self.show_message(text, action=tr("Review"))


class SidebarFoot(QWidget):
    """Settings, help, and the button that hides the sidebar.

    `action_chosen` has the name of an action of the window.
    """

    action_chosen = Signal(str)
    about_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._settings = push_button(tr("Settings"), "quiet")
        self._help = IconButton(theme, "circle-question-mark", tr("Help"))
        self._hide = IconButton(theme, "panel-left", tr("Hide sidebar"))
        set_hbox(self, self._settings, STRETCH, self._help, self._hide, spacing=theme.tokens.space_tight)
        ShortcutToolTip(self._settings, tr("Settings"), "settings")
        ShortcutToolTip(self._hide, tr("Hide sidebar"), "sidebar")
        self._settings.clicked.connect(lambda: self.action_chosen.emit("settings"))
        self._hide.clicked.connect(lambda: self.action_chosen.emit("sidebar"))
        self._help.clicked.connect(self._on_help_clicked)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()

    def _on_help_clicked(self) -> None:
        menu = QMenu(self)
        for text, name in (
            (tr("Keyboard shortcuts"), "shortcuts"),
            (tr("Search actions and settings"), "palette"),
            (tr("Play the tour"), "tour"),
        ):
            menu.addAction(text).triggered.connect(partial(self.action_chosen.emit, name))
        menu.addSeparator()
        menu.addAction(tr("About Errand")).triggered.connect(self.about_requested)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self._help.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def _on_theme_changed(self) -> None:
        self._settings.setIcon(self._theme.icon("settings", "muted"))


class SidebarView(QFrame):
    """Requests a conversation with `opened` or `opened_in_background`, one of its nodes with `hit_opened`.

    `hit_opened` also gives the search words. `stop_requested`, `resume_requested`, `new_task_requested` and
    `facts_requested` request what their names say.
    """

    opened = Signal(str)
    opened_in_background = Signal(str)
    hit_opened = Signal(str, str, str)
    stop_requested = Signal(str)
    resume_requested = Signal(str)
    new_task_requested = Signal()
    facts_requested = Signal()

    def __init__(
        self, stores: Stores, unread: UnreadStore, marks: ConversationMarks, theme: Theme, pulse: PulseTimer
    ) -> None:
        super().__init__()
        self.setObjectName("sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._stores = stores
        self._theme = theme
        self._query = ""
        self._shown_query = ""
        self._hit_words = ""
        self._opens_first = False
        self.search = SearchField(theme, tr("Search"))
        set_tool_tip(self.search, OPERATORS)
        self.new = push_button(tr("New task"))
        self.inbox = InboxView(stores, unread, theme, pulse)
        self.list = ConversationListView(stores.conversations, marks, theme)
        self.results = SearchResultsView(theme)
        self.undo = UndoBannerView(stores.conversations, theme)
        self.notice = PassingBannerView(theme)
        self.proposed = FactBannerView(stores.facts, theme)
        self.foot = SidebarFoot(theme)
        self._archived = push_button(tr("Archived"), "quiet")
        self._empty = TextLabel(theme, tone="muted", wrap=True)
        self._empty.setMargin(theme.tokens.space_close)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._inbox_scroll = FitContentScrollView(self.inbox, theme.tokens.column // 6)
        self._home = QWidget()
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._on_theme_changed()
        self._on_conversations_changed()
        self._on_archived_changed()

    @cached_property
    def archive(self) -> "ArchiveView":
        """Created when first shown: most sessions never open it."""
        from errand.window.views.sidebar.archive import ArchiveView

        archive = ArchiveView(self._stores.conversations, self._theme)
        archive.opened.connect(self.opened)
        archive.opened_in_background.connect(self.opened_in_background)
        archive.back_requested.connect(self._on_archive_left)
        self._stack.addWidget(archive)
        return archive

    def focus_panes(self) -> tuple[QWidget, ...]:
        """Return the stops of F6."""
        return (self.search, *self.inbox.rows[:1], self.list)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        set_vbox(self._home, fill(self._empty), fill(self.list), spacing=tokens.space_close)
        self._stack.addWidget(self._home)
        self._stack.addWidget(self.results)
        top = hbox(fill(self.search), self.new, spacing=tokens.space_close)
        set_vbox(
            self,
            top,
            self._inbox_scroll,
            fill(self._stack),
            self.undo,
            self.notice,
            self.proposed,
            at_left(self._archived),
            self.foot,
            spacing=tokens.space_close,
            margins=(tokens.space_close, tokens.space_close, tokens.space_close, tokens.space_tight),
        )

    def _connect(self) -> None:
        self.search.searched.connect(self._on_searched)
        self.search.returnPressed.connect(self._on_search_entered)
        self.search.down_pressed.connect(self._on_down_pressed)
        self.new.clicked.connect(self.new_task_requested)
        self.proposed.action_clicked.connect(self.facts_requested)
        self.inbox.opened.connect(self.opened)
        self.inbox.stop_requested.connect(self.stop_requested)
        self.inbox.resume_requested.connect(self.resume_requested)
        self.inbox.resized.connect(self._inbox_scroll.fit)
        self.inbox.entry_focused.connect(self._on_entry_focused)
        self.list.opened.connect(self.opened)
        self.list.opened_in_background.connect(self.opened_in_background)
        self.results.opened.connect(self._on_result_opened)
        self.results.back_requested.connect(self._on_results_left)
        self._archived.clicked.connect(self._on_archive_requested)
        self._stores.conversations.searched.connect(self._on_found)
        self._stores.conversations.memory_switched.connect(self._on_memory_switched)
        self._stores.conversations.exported.connect(self._on_exported)
        self._stores.conversations.reset.connect(self._on_listed)
        self._stores.conversations.archived.reset.connect(self._on_archived_changed)
        self._stores.conversations.archived.changed.connect(self._on_archived_changed)
        self._stack.currentChanged.connect(self._on_archived_changed)
        self._stores.conversations.reset.connect(self._on_conversations_changed)
        self._stores.conversations.changed.connect(self._on_conversations_changed)
        self._theme.changed.connect(self._on_theme_changed)

    def _on_searched(self, text: str) -> None:
        self._query = text
        self._opens_first = False
        if text:
            self._stores.conversations.search(text)
        else:
            self._shown_query = ""
            self._stack.setCurrentWidget(self._home)

    def _on_found(self, result: ConversationSearchResult) -> None:
        if not self._query:
            return
        self._shown_query = self._query
        self._hit_words = result.words
        self.results.show_results(self._shown_query, result)
        self._stack.setCurrentWidget(self.results)
        if self._opens_first:
            self._opens_first = False
            self.results.open_selected()

    def _on_memory_switched(self, changed: Conversation) -> None:
        self.notice.show_message(memory_text(changed), "done")

    def _on_exported(self, words: str) -> None:
        self.notice.show_message(words, "done")

    def _on_search_entered(self) -> None:
        """Open the first result; if the results are of an earlier search, once those of the current one arrive."""
        if self._shown_query == self._query:
            self.results.open_selected()
        else:
            self._opens_first = True

    def _on_down_pressed(self) -> None:
        here = self._stack.currentWidget()
        target = self.list if here is self._home else self.results if here is self.results else self.archive.list
        target.setFocus(Qt.FocusReason.TabFocusReason)

    def _on_result_opened(self, conversation_id: str, node_id: str) -> None:
        if node_id:
            self.hit_opened.emit(conversation_id, node_id, self._hit_words)
        else:
            self.opened.emit(conversation_id)

    def _on_results_left(self) -> None:
        self.search.setFocus(Qt.FocusReason.BacktabFocusReason)

    def _on_entry_focused(self, entry: QWidget) -> None:
        self._inbox_scroll.ensureWidgetVisible(entry, 0, 0)

    def _on_archive_requested(self) -> None:
        self._stack.setCurrentWidget(self.archive)
        self.archive.enter()

    def _on_archive_left(self) -> None:
        self._stack.setCurrentWidget(self._home)
        (self.list if self._archived.isHidden() else self._archived).setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_listed(self) -> None:
        """Loads the archive once, to know whether it is empty; after that, events keep it up to date."""
        if not self._stores.conversations.archived.is_loaded:
            self._stores.conversations.archived.load()

    def _on_archived_changed(self) -> None:
        is_home = self._stack.currentWidget() is self._home
        self._archived.setHidden(not is_home or self._stores.conversations.archived.count() == 0)

    def _on_conversations_changed(self) -> None:
        is_empty = self._stores.conversations.count() == 0
        self._empty.setText(_NOTHING if self._stores.conversations.is_loaded else "")
        self._empty.setVisible(is_empty)
        self.list.setVisible(not is_empty)

    def _on_theme_changed(self) -> None:
        self.setMinimumWidth(self._theme.tokens.column // 3)
        self.new.setIcon(self._theme.icon("plus"))
        self._archived.setIcon(self._theme.icon("archive", "muted"))
