"""The content of a tab: the transcript or the welcome text, the find bar, the input panel."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QStackedWidget, QWidget

from errand.client.conversation.task_states import is_working
from errand.text.translation import tr
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.review.changes import ChangesStore, is_undone
from errand.window.theme.tokens import DesignTokens
from errand.window.theme.zoom import rescale
from errand.window.transcript.view import TranscriptView
from errand.window.views.composer.composer import ComposerView
from errand.window.views.composer.drop_payload import DropHintView, can_attach
from errand.window.views.composer.input_panel import InputPanelView
from errand.window.views.composer.notices import NoticeSlotView
from errand.window.views.conversation.announcements import Announcements
from errand.window.views.conversation.dialogs import ConversationDialogs
from errand.window.views.conversation.find_bar_slot import FindBarSlot
from errand.window.views.conversation.keys import EscapeKey, UnhandledKeys
from errand.window.views.conversation.memory_notices import MemoryNotices
from errand.window.views.conversation.navigation import AskNavigation, RowNavigation
from errand.window.views.conversation.services import ViewServices
from errand.window.views.conversation.side_panels import SidePanel, SidePanelsView
from errand.window.views.conversation.task_notices import TaskNotices
from errand.window.views.conversation.welcome import WelcomeView
from errand.window.views.shared.row_actions import ConversationRowActions
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_vbox

if TYPE_CHECKING:
    from errand.window.views.branches.tree_panel import TreePanelView
    from errand.window.views.review.review_panel import ReviewPanelView


_DROP = tr("Drop files and pictures to attach them")
_DROP_NEW = tr("Drop files and pictures to attach them, or a folder to work in")


class ConversationView(QWidget):
    """Shows a conversation store; user actions become intents of the store.

    `setup_requested` asks for the form of a model provider, `local_model_requested` for the models that run here.
    """

    tour_requested = Signal()
    setup_requested = Signal()
    local_model_requested = Signal()
    draft_changed = Signal(str)
    options_changed = Signal(object)

    def __init__(self, store: ConversationStore, services: ViewServices) -> None:
        super().__init__()
        stores, models, theme, clipboard = services.stores, services.models, services.theme, services.clipboard
        self.store = store
        self._stores = stores
        self._theme = theme
        self._models = models
        self._welcome_store = services.welcome
        self.changes = ChangesStore(store, stores.session)
        actions = ConversationRowActions(store, models, clipboard, self, self.changes)
        self.transcript = TranscriptView(store, theme, actions)
        self._welcome: WelcomeView | None = None
        self.input_panel = InputPanelView(store, stores, models, theme, services.pasted)
        self.dialogs = ConversationDialogs(store, services, self.input_panel, self)
        self.search = FindBarSlot(store, stores.session, self.transcript, theme)
        self.navigation = RowNavigation(store, self.transcript, self.notices)
        self.asks = AskNavigation(store, stores.asks, self.transcript, self.composer)
        self.task_notices = TaskNotices(store, models, self.input_panel)
        self._announcements = Announcements(store, stores.asks, self)
        MemoryNotices(store, stores.embedding_model, self.input_panel)
        self._stack = QStackedWidget()
        self._content = QWidget()
        self.panels = SidePanelsView(self._content, store, self.changes, stores.session, theme, clipboard.setText)
        self._drop_target = DropTarget(self, DropHintView(theme, self._stack))
        self._escape = EscapeKey(store, self.transcript, self.search, self.input_panel, self.panels)
        self._unhandled_keys = UnhandledKeys(self, self.composer, self._escape)
        self._lay_out()
        self._connect()
        self._show_rows()
        self.setFocusProxy(self.composer)
        self.setObjectName("conversation")
        theme.rescaled.connect(self._on_rescaled)

    @property
    def tree(self) -> SidePanel["TreePanelView"]:
        return self.panels.tree

    @property
    def review(self) -> SidePanel["ReviewPanelView"]:
        return self.panels.review

    @property
    def notices(self) -> NoticeSlotView:
        return self.input_panel.notices

    @property
    def composer(self) -> ComposerView:
        return self.input_panel.composer

    @property
    def welcome(self) -> WelcomeView:
        """Created on first use: a tab with a conversation has none."""
        if self._welcome is None:
            self._welcome = welcome = WelcomeView(self._welcome_store, self._models, self._stores.sandbox, self._theme)
            welcome.tour_requested.connect(self.tour_requested)
            welcome.setup_requested.connect(self.setup_requested)
            welcome.local_model_requested.connect(self.local_model_requested)
            welcome.browse_requested.connect(self.input_panel.task_options.choose_folder)
            welcome.folder_chosen.connect(self._on_folder_chosen)
            welcome.mode_chosen.connect(self.input_panel.choose_mode)
            self._stack.addWidget(welcome)
            self._show_folders()
        return self._welcome

    def focus_panes(self) -> tuple[QWidget, ...]:
        """Return the stops of F6."""
        beginning = (self._welcome.focus_pane(),) if self._welcome is not None else ()
        inside = (pane.focusProxy() or pane for pane in self.panels.panes)
        return (self.transcript, *beginning, self.composer.field, *inside)

    @property
    def is_at_rest(self) -> bool:
        """True if a new view would be the same: nothing is under way, half written, chosen, searched or opened here."""
        task = self.store.task
        return (
            self.navigation.has_position
            and self._stores.session.state == "ready"
            and (task is None or not is_working(task))
            and self.input_panel.is_at_rest
            and not self.store.branches.drafts
            and not self.store.branch.is_edited
            and not self.search.is_open
            and not any(child.isWindow() and child.isVisible() for child in self.findChildren(QWidget))
        )

    def pause_or_resume(self) -> None:
        """Pause or resume the task; the next key is typed into the composer."""
        self.store.commands.pause_or_resume()
        self.composer.setFocus()

    def _lay_out(self) -> None:
        self._stack.addWidget(self.transcript)
        set_vbox(
            self._content,
            self.search,
            fill(self._stack),
            hbox(STRETCH, fill(self.input_panel, 1000), STRETCH),
            spacing=0,
        )
        set_vbox(self, self.panels)

    def _on_rescaled(self, before: DesignTokens, after: DesignTokens) -> None:
        rescale(self, before, after)

    def _connect(self) -> None:
        store = self.store
        self.input_panel.status.pause_requested.connect(self.pause_or_resume)
        self.input_panel.status.changes_requested.connect(self.review.toggle)
        self.changes.review_requested.connect(self._on_review_requested)
        self.changes.changed.connect(self._on_files_changed)
        self.panels.closed_with_focus.connect(self.composer.setFocus)
        self.transcript.selection.clicked.connect(self.composer.setFocus)
        self.composer.field.page_requested.connect(self.transcript.scroll_page)
        self.panels.compare_requested.connect(self.dialogs.compare)
        self.panels.export_requested.connect(self.dialogs.export)
        self.input_panel.agents.compare_requested.connect(self.dialogs.compare)
        self.input_panel.task_options.ask_models_requested.connect(self.dialogs.ask_models)
        self.store.commands.compared.connect(self.dialogs.compare)
        self.store.branches.compare_requested.connect(self.dialogs.compare)
        self.store.commands.workspace_requested.connect(self.dialogs.ask_for_workspace)
        for signal in (store.reset, store.inserted, store.removed, store.commands.stored):
            signal.connect(self._show_rows)
        store.edit_started.connect(self.transcript.enter_row)
        store.edit_ended.connect(self.composer.field.setFocus)
        store.branches.forked.connect(self.composer.field.setFocus)
        self.input_panel.sent.connect(self.transcript.to_end)
        self.input_panel.options_changed.connect(self.options_changed)
        self.composer.edit_last_requested.connect(store.branches.edit_last)
        self.composer.edited.connect(self.draft_changed)
        self.task_notices.setup_requested.connect(self.setup_requested)
        self.task_notices.local_model_requested.connect(self.local_model_requested)
        self._welcome_store.changed.connect(self._show_folders)
        self.input_panel.task_options.folder_changed.connect(self._show_folders)
        self.input_panel.sent.connect(self._on_sent)
        self.input_panel.mode_chosen.connect(self._welcome_store.set_mode_chosen)
        self.tour_requested.connect(self.task_notices.forget_missing_model)

    def _on_files_changed(self) -> None:
        files = self.changes.shown.files if self.changes.shown is not None else ()
        undone = sum(is_undone(file) for file in files)
        self.input_panel.status.show_changes(len(files) - undone, undone)

    def _on_review_requested(self, task_id: str, name: str) -> None:
        self.review.open()
        self.review.panel.show_file(task_id, name)
        self.review.panel.setFocus()

    def _show_rows(self) -> None:
        has_begun = self.store.conversation_id is not None or self.store.count() > 0
        self._stack.setCurrentWidget(self.transcript if has_begun else self.welcome)

    def _on_sent(self) -> None:
        if self.store.conversation_id is None:
            self._welcome_store.add(self.store.commands.options.workspace)

    def _on_folder_chosen(self, folder: str) -> None:
        """Chosen again, it is chosen no longer."""
        options = self.input_panel.task_options
        options.set_folder(folder if options.options.workspace != folder else None)
        self.composer.setFocus()

    def _show_folders(self) -> None:
        self.input_panel.task_options.set_folders(self._welcome_store.folders)
        if self._welcome is not None:
            self._welcome.folders.show_chosen(self.input_panel.task_options.options.workspace or "")


class DropTarget(QObject):
    """Attaches the files and pictures that are dropped on a conversation; `hint` covers it while they hover."""

    def __init__(self, view: ConversationView, hint: DropHintView) -> None:
        super().__init__(view)
        self._view = view
        self._hint = hint
        view.setAcceptDrops(True)
        view.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event:
            case QDragEnterEvent() if can_attach(event.mimeData()):
                self._hint.show_text(_DROP if self._view.store.conversation_id else _DROP_NEW)
                event.acceptProposedAction()
            case QDragLeaveEvent():
                self._hint.hide()
            case QDropEvent() if event.type() == QEvent.Type.Drop:
                self._hint.hide()
                self._view.input_panel.attach_content(event.mimeData())
                self._view.composer.setFocus()
                event.acceptProposedAction()
            case _:
                return False
        return True
