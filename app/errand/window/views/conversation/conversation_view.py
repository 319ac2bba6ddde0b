"""The content of a tab: the transcript or the welcome text, the find bar, the input panel."""

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent
from PySide6.QtWidgets import QStackedWidget, QVBoxLayout, QWidget

from errand.client.conversation.rows import AskRow
from errand.client.conversation.task_states import is_working
from errand.protocol.asks import Ask
from errand.text.translation import tr
from errand.window.stores.catalog import is_scripted
from errand.window.stores.changes import ChangesStore, is_undone
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.window_state import ScrollPosition
from errand.window.theme.tokens import DesignTokens
from errand.window.theme.zoom import rescale
from errand.window.transcript.view import TranscriptView
from errand.window.views.composer.composer import ComposerView
from errand.window.views.composer.drop_payload import DropHintView, can_attach
from errand.window.views.composer.input_panel import InputPanelView
from errand.window.views.composer.notices import NoticeKind, NoticeSlotView
from errand.window.views.conversation.dialogs import ConversationDialogs
from errand.window.views.conversation.keys import EscapeKey, UnhandledKeys
from errand.window.views.conversation.services import ViewServices
from errand.window.views.conversation.side_panels import SidePanel, SidePanelsView
from errand.window.views.conversation.welcome import WelcomeView
from errand.window.views.shared.row_actions import ConversationRowActions
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_vbox
from errand.window.widgets.input.field_keys import holds_text
from errand.window.widgets.notice_line import Notice

if TYPE_CHECKING:
    from errand.window.views.branches.tree_panel import TreePanelView
    from errand.window.views.conversation.find_bar import FindBarView
    from errand.window.views.review.review_panel import ReviewPanelView


_NOT_HERE = tr("That message is in another branch. It can be shown when the agent has finished here.")
_NO_MODEL = tr("No model is set up yet. Your message is kept here until then.")
_INTERRUPTED = tr("The engine stopped during this task. Finished steps are kept and do not run again.")
_TOURED = tr("This task was part of the tour.")
_SET_UP, _START_IN_FOLDER = tr("Set up your own model"), tr("Start in a folder…")

_DROP = tr("Drop files and pictures to attach them")
_DROP_NEW = tr("Drop files and pictures to attach them, or a folder to work in")


class ConversationView(QWidget):
    """Shows a conversation store; user actions become intents of the store.

    `setup_requested` asks for the form of a model provider, `folder_task_requested` for a new task in a folder.
    """

    tour_requested = Signal()
    setup_requested = Signal()
    folder_task_requested = Signal()
    draft_changed = Signal(str)
    options_changed = Signal(object)
    resume_requested = Signal(str)
    scrolled = Signal()

    def __init__(self, store: ConversationStore, services: ViewServices) -> None:
        super().__init__()
        stores, models, theme, clipboard = services.stores, services.models, services.theme, services.clipboard
        self.store = store
        self._stores = stores
        self._theme = theme
        self._models = models
        self._welcome_store = services.welcome
        self._pending_ask = False
        self._left_agent = ""  # whose branch was left for an ask of a sub-agent
        self._knows_next_steps = False
        self._pending_position: ScrollPosition | None = None
        self.changes = ChangesStore(store, stores.session)
        actions = ConversationRowActions(store, models, clipboard, self, self.changes)
        self.transcript = TranscriptView(store, theme, actions)
        self._welcome: WelcomeView | None = None
        self.input_panel = InputPanelView(store, stores, models, theme, services.pasted)
        self.dialogs = ConversationDialogs(store, services, self.input_panel, self)
        self._find_bar: FindBarView | None = None
        self._find_bar_layout = QVBoxLayout()
        self._stack = QStackedWidget()
        self._content = QWidget()
        self.panels = SidePanelsView(self._content, store, self.changes, stores.session, theme, clipboard.setText)
        self._drop_target = DropTarget(self, DropHintView(theme, self._stack))
        self._escape = EscapeKey(store, self.transcript, self.input_panel, self.panels, self.notices)
        self._unhandled_keys = UnhandledKeys(self, self.composer, self._escape)
        self._lay_out()
        self._connect()
        self._show_rows()
        self._show_task()
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
            self._welcome = welcome = WelcomeView(self._welcome_store, self._models, self._theme)
            welcome.tour_requested.connect(self.tour_requested)
            welcome.setup_requested.connect(self.setup_requested)
            welcome.browse_requested.connect(self.input_panel.task_options.choose_folder)
            welcome.folder_chosen.connect(self._on_folder_chosen)
            self._stack.addWidget(welcome)
            self._show_folders()
        return self._welcome

    def focus_panes(self) -> tuple[QWidget, ...]:
        """The stops of F6."""
        beginning = (self._welcome.focus_pane(),) if self._welcome is not None else ()
        inside = (pane.focusProxy() or pane for pane in self.panels.panes)
        return (self.transcript, *beginning, self.composer.field, *inside)

    @property
    def has_scroll_position(self) -> bool:
        """False until the stored rows are shown."""
        return self.store.is_loaded and not self.store.seeker.is_seeking

    @property
    def is_at_rest(self) -> bool:
        """True if a new view would be the same: nothing is under way, half written, chosen, searched or opened here."""
        task = self.store.task
        return (
            self.has_scroll_position
            and self._stores.session.state == "ready"
            and (task is None or not is_working(task))
            and self.input_panel.is_at_rest
            and not self.store.branches.drafts
            and not self.store.branch.is_edited
            and not self.is_searching
            and not any(child.isWindow() and child.isVisible() for child in self.findChildren(QWidget))
        )

    @property
    def scroll_position(self) -> ScrollPosition | None:
        """The scroll position; None at the end."""
        position = self.transcript.scroll_position
        return ScrollPosition(*self.store.rows.section_of(position[0]), position[1]) if position is not None else None

    def go_to(self, node_id: str) -> None:
        """Show a node on any branch, loading pages if needed. Reports an error if it cannot be found."""
        self._pending_position = None
        self.store.seeker.seek(node_id, switches=True)

    def restore_scroll_position(self, position: ScrollPosition) -> None:
        """Restore a scroll position. Does nothing if its node no longer exists."""
        self._pending_position = position
        self.store.seeker.seek(position.node_id, position.number)

    def go_to_ask(self) -> None:
        """Scroll to the open ask and focus it, now or once it is loaded.

        The focus stays in a text that was begun meanwhile.
        """
        ask, before = self.store.next_ask, self.store.agents.shown
        switches_agent = ask is not None and self.store.is_loaded and self.store.show_task(ask.task_id)
        if switches_agent and before is not None and before.called_by is None:
            self._left_agent = before.id
        row = self._row_of(ask) if ask is not None and not switches_agent else None
        was_pending = self._pending_ask
        self._pending_ask = not self.store.is_loaded or (ask is not None and row is None)
        if row is not None and was_pending and holds_text(self.window().focusWidget()):
            self.transcript.ensure_row_visible(row)
        elif row is not None:
            self.transcript.focus_row(row)

    def _return_to_agent(self) -> None:
        """Show the branch again that was left for an ask of a sub-agent, once nothing waits for a person there."""
        shown_agent = self.store.agents.shown
        if not self._left_agent or shown_agent is None:
            return
        waiting = {ask.task_id for ask in self.store.commands.waiting}
        task = self.store.commands.task
        if shown_agent.called_by is None:
            self._left_agent = ""
        elif task is None or task.id not in waiting:
            left, self._left_agent = self._left_agent, ""
            self.store.agents.show_agent(left)

    def allow_once(self) -> None:
        """Allow the open approval, with the focus on its card or in the message field while that is empty.

        Otherwise it is only shown: nobody should allow what they have not seen, or while they write something.
        """
        approval = next((ask for ask in self.store.commands.waiting if ask.kind == "approval"), None)
        row = self._row_of(approval) if approval is not None else None
        if approval is None or row is None:
            return
        focused = self.window().focusWidget()
        is_in_field = focused is self.composer.field
        can_allow = not self.composer.has_content if is_in_field else self.transcript.is_focused(row)
        if can_allow and row in self.transcript.shown and not holds_text(focused):
            self.transcript.choose(row, 1)
        elif holds_text(focused) or self.composer.has_content:
            self.transcript.ensure_row_visible(row)
        else:
            self.transcript.focus_row(row)

    def pause_or_resume(self) -> None:
        """Pause or resume the task; the next key is typed into the composer."""
        self.store.commands.pause_or_resume()
        self.composer.setFocus()

    def find_next(self, *, forward: bool) -> None:
        """Go to the next or previous hit; opens the find bar if it is closed."""
        if not self.find_bar.isVisible():
            self.find_bar.open()
        elif forward:
            self.find_bar.search.next()
        else:
            self.find_bar.search.previous()

    @property
    def is_searching(self) -> bool:
        return self._find_bar is not None and self._find_bar.isVisible()

    @property
    def find_bar(self) -> "FindBarView":
        """Created on first use."""
        from errand.window.rows.registry import row_text
        from errand.window.stores.conversation.find import FindStore
        from errand.window.views.conversation.find_bar import FindBarView  # most conversations are never searched

        if self._find_bar is None:
            find = FindStore(self.store, self._stores.session, row_text)
            find.failed.connect(self.store.failed)
            self._find_bar = FindBarView(find, self.transcript, self._theme)
            self._find_bar_layout.addWidget(self._find_bar)
            self._escape.find_bar = self._find_bar
        return self._find_bar

    def _lay_out(self) -> None:
        self._stack.addWidget(self.transcript)
        set_vbox(
            self._content,
            self._find_bar_layout,
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
        store.taskUpdate.connect(self._show_task)
        store.loaded.connect(self._show_task)
        store.loaded.connect(self._on_loaded)
        store.reached.connect(self._on_reached)
        store.edit_started.connect(self.transcript.enter_row)
        store.edit_ended.connect(self.composer.field.setFocus)
        store.branches.forked.connect(self.composer.field.setFocus)
        store.missed.connect(self._on_missed)
        self.transcript.verticalScrollBar().valueChanged.connect(self._on_bar_moved)
        self.input_panel.sent.connect(self.transcript.to_end)
        self.input_panel.options_changed.connect(self.options_changed)
        self.composer.edit_last_requested.connect(store.branches.edit_last)
        self.composer.edited.connect(self.draft_changed)
        self.composer.choice_entered.connect(self._on_choice_entered)
        self.notices.action_chosen.connect(self._on_notice_action)
        self.notices.dismissed.connect(self._on_notice_dismissed)
        self._welcome_store.changed.connect(self._show_folders)
        self._stores.asks.changed.connect(self._return_to_agent)
        self.input_panel.task_options.folder_changed.connect(self._show_folders)
        self.input_panel.model_missing.connect(self._on_model_missing)
        self.input_panel.sent.connect(self._on_sent)
        self._models.changed.connect(self._show_task)
        self._models.changed.connect(self._on_models_changed)
        self.tour_requested.connect(partial(self.notices.put, "no_model", None))

    def _on_files_changed(self) -> None:
        files = self.changes.shown.files if self.changes.shown is not None else ()
        undone = sum(is_undone(file) for file in files)
        self.input_panel.status.show_changes(len(files) - undone, undone)

    def _on_review_requested(self, task_id: str, name: str) -> None:
        self.review.open()
        self.review.panel.show_file(task_id, name)
        self.review.panel.setFocus()

    def _row_of(self, ask: Ask) -> int | None:
        """The row of an ask, usually near the end."""
        for index in reversed(range(self.store.count())):
            row = self.store.row(index)
            if isinstance(row, AskRow) and row.ask.id == ask.id:
                return index
        return None

    def _show_rows(self) -> None:
        has_begun = self.store.conversation_id is not None or self.store.count() > 0
        self._stack.setCurrentWidget(self.transcript if has_begun else self.welcome)

    def _show_task(self) -> None:
        task = self.store.task
        if self._pending_ask and self.store.is_loaded:
            self.go_to_ask()
        is_interrupted = task is not None and task.status == "interrupted"
        self.notices.put("interrupted", Notice(_INTERRUPTED, "waiting", (tr("Resume"),)) if is_interrupted else None)
        self._show_next_steps()

    def _show_next_steps(self) -> None:
        """Below a task of the tour that has ended: what to do with Errand now. Dismissed once, it stays away."""
        task = self.store.task
        if task is None or task.ended_at is None or not is_scripted(task.model) or self._knows_next_steps:
            self.notices.put("tour", None)
        else:
            actions = (_SET_UP, _START_IN_FOLDER) if self._models.is_empty else (_START_IN_FOLDER,)
            self.notices.put("tour", Notice(_TOURED, "info", actions, is_dismissible=True))

    def _on_loaded(self) -> None:
        if self._pending_ask:
            self.go_to_ask()

    def _on_reached(self, index: int) -> None:
        position, self._pending_position = self._pending_position, None
        self.transcript.to_row(index, position.offset if position is not None else 0)

    def _on_missed(self) -> None:
        position, self._pending_position = self._pending_position, None
        if position is None:
            self.notices.show_message(_NOT_HERE, "info")

    def _on_bar_moved(self) -> None:
        if not self.transcript.is_at_end:  # text that streams in at the end is not scrolling
            self.scrolled.emit()

    def _on_model_missing(self) -> None:
        self.notices.put("no_model", Notice(_NO_MODEL, "waiting", (tr("Set up a model"),)))

    def _on_choice_entered(self, number: int) -> None:
        """An ask that is not visible is only shown: nobody should answer what they have not seen."""
        ask = self.store.commands.question or self.store.next_ask
        row = self._row_of(ask) if ask is not None else None
        if row is not None and self.transcript.choose(row, number):
            self.composer.set_text("")
        else:
            self.go_to_ask()
            self.composer.setFocus()

    def _on_models_changed(self) -> None:
        if not self._models.is_empty:
            self.notices.put("no_model", None)

    def _on_sent(self) -> None:
        self.notices.put("no_model", None)
        self.notices.clear_message()
        if self.store.conversation_id is None:
            self._welcome_store.add(self.store.commands.options.workspace)

    def _on_notice_action(self, kind: NoticeKind, number: int) -> None:
        match kind:
            case "interrupted":
                if self.store.task is not None:
                    self.resume_requested.emit(self.store.task.id)
                    self.composer.setFocus()
            case "no_model":
                self.setup_requested.emit()
            case "tour" if self._models.is_empty and number == 0:
                self.setup_requested.emit()
            case "tour":
                self.folder_task_requested.emit()
            case "connection" | "health" | "message":
                pass  # the first is handled where it is made, the others have no buttons

    def _on_notice_dismissed(self, kind: NoticeKind) -> None:
        self._knows_next_steps = self._knows_next_steps or kind == "tour"

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
