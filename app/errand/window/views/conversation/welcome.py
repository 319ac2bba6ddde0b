"""What an empty conversation shows: what it is for, the way to a model, and folders to start in."""

from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.text.translation import tr
from errand.window.stores.catalog import ModelStore, SandboxStore
from errand.window.stores.welcome import WelcomeStore, short_path
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.conversation.first_mode import FirstModeView
from errand.window.widgets.boxes import STRETCH, BoxPart, fill, hbox, set_hbox, set_vbox, stretch
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.containers import FlowLayout, clear_layout, vertical_scroll_area
from errand.window.widgets.labels import TextLabel

_TITLE = tr("What should the agent do?")
_TEXT = tr(
    "Describe the task below. The agent reports what it does, asks before anything risky, and stops when you say so. "
    "You can start other tasks in the meantime."
)
_NO_MODEL_TITLE = tr("Set up a model to start")
_NO_MODEL_TEXT = tr("Run a model on this machine, or use your own API key or a local server such as Ollama.")
_TOUR_TEXT = tr("Or play the tour: three tasks with scripted replies and real tools. Nothing leaves this machine.")

_ICON, _WIDTH = 32, 400
_BUTTON_PADDING = 13 + 19 + 8  # the style sheet's, and the space before the text


class WelcomeView(QWidget):
    """Emits what its buttons request. `folder_chosen` has the folder, `browse_requested` asks for another one,
    `mode_chosen` has the approval mode.
    """

    tour_requested = Signal()
    setup_requested = Signal()
    local_model_requested = Signal()
    browse_requested = Signal()
    folder_chosen = Signal(str)
    mode_chosen = Signal(str)

    def __init__(self, store: WelcomeStore, models: ModelStore, sandbox: SandboxStore, theme: Theme) -> None:
        super().__init__()
        self._sandbox = sandbox
        self._store = store
        self._models = models
        self._theme = theme
        tokens = theme.tokens
        self._inside = QWidget()
        self._picture = QLabel()
        self._title = TextLabel(theme, size=tokens.size_heading, bold=True, wrap=True)
        self._title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._text = TextLabel(theme, tone="muted", wrap=True)
        self._text.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.set_up = push_button(tr("Set up your own model"), "primary")
        self.run_here = push_button(tr("Run a model here"))
        self.tour = push_button(tr("Play the tour"))
        self._buttons = QWidget()
        self.folders = FoldersView(store, theme)
        self.first_mode = FirstModeView(theme)
        self._lay_out()
        self.set_up.clicked.connect(self.setup_requested)
        self.run_here.clicked.connect(self.local_model_requested)
        self.tour.clicked.connect(self.tour_requested)
        self.folders.chosen.connect(self.folder_chosen)
        self.folders.browse.clicked.connect(self.browse_requested)
        self.first_mode.chosen.connect(self.mode_chosen)
        models.changed.connect(self._show)
        sandbox.changed.connect(self._show)
        store.changed.connect(self._show)
        theme.changed.connect(self._on_theme_changed)
        self._show()
        self._on_theme_changed()

    def focus_pane(self) -> QWidget:
        """Return the first thing to do: a stop of F6."""
        if not self._models.is_empty:
            return self.folders.browse
        return self.set_up if self._store.has_toured else self.tour

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._keep_width()
        self._store.look()

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self._buttons.setLayout(FlowLayout(tokens.space_close, self.tour, self.run_here, self.set_up))
        set_style(self._inside, "look", "page")
        column = QVBoxLayout(self._inside)
        column.setSpacing(tokens.space_close)
        column.addStretch(2)
        centre = Qt.AlignmentFlag.AlignHCenter
        column.addWidget(self._picture, 0, centre)
        column.addLayout(_centred(self._title, self._theme))
        column.addLayout(_centred(self._text, self._theme))
        column.addSpacing(tokens.space_close)
        column.addLayout(hbox(STRETCH, self._buttons, STRETCH))
        column.addSpacing(tokens.space_close)
        column.addLayout(_centred(self.folders, self._theme))
        column.addSpacing(tokens.space_wide)
        column.addLayout(_centred(self.first_mode, self._theme))
        column.addStretch(3)
        self._area = vertical_scroll_area(self._inside)
        set_vbox(self, self._area)

    def _show(self) -> None:
        """The primary button is the tour until it was played."""
        is_empty, has_toured = self._models.is_empty, self._store.has_toured
        self._title.setText(_NO_MODEL_TITLE if is_empty else _TITLE)
        self._text.setText((_NO_MODEL_TEXT if has_toured else f"{_NO_MODEL_TEXT} {_TOUR_TEXT}") if is_empty else _TEXT)
        self._buttons.setVisible(is_empty)
        # Without a sandbox there is no mode to recommend, and before there is a model nothing to do.
        self.first_mode.setVisible(self._sandbox.holds and not is_empty and not self._store.has_chosen_mode)
        set_style(self.tour, "look", "plain" if has_toured else "primary")
        set_style(self.set_up, "look", "primary" if has_toured else "plain")
        self._keep_width()

    def _keep_width(self) -> None:
        """Let the window be no narrower than the widest button, beside the scroll bar."""
        bar = self._area.verticalScrollBar().sizeHint().width()
        self._area.setMinimumWidth(self._inside.minimumSizeHint().width() + bar)

    def _on_theme_changed(self) -> None:
        icon = self._theme.icon("message-square-plus", "muted")
        self._picture.setPixmap(icon.pixmap(QSize(_ICON, _ICON), self.devicePixelRatio()))


class FoldersView(QWidget):
    """The folder that Errand was started in, and the recent ones. `show_chosen` ticks one."""

    chosen = Signal(str)

    def __init__(self, store: WelcomeStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self._theme = theme
        self._ticked = ""
        self.browse = push_button(tr("Start in a folder…"), "row")
        self.rows: list[FolderRowView] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self.browse)
        store.changed.connect(self._show)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()
        self._show()

    def show_chosen(self, folder: str) -> None:
        """Tick the folder of the next task; "" is none."""
        self._ticked = folder
        for row in self.rows:
            row.set_ticked(is_ticked=row.folder == folder)

    def _show(self) -> None:
        focused = next((row.folder for row in self.rows if row.isAncestorOf(self.focusWidget() or self)), "")
        folders = self._store.folders
        if [row.folder for row in self.rows] != list(folders):
            clear_layout(self._column, 1)
            self.rows = [self._made_row(folder) for folder in folders]
        alone = Qt.AlignmentFlag.AlignHCenter
        self._column.setAlignment(self.browse, alone if not folders else Qt.AlignmentFlag(0))
        self.show_chosen(self._ticked)
        if focused:
            self._keep_focus(focused)

    def _made_row(self, folder: str) -> "FolderRowView":
        row = FolderRowView(self._theme, folder, is_here=folder == self._store.started_in)
        row.chosen.connect(partial(self.chosen.emit, folder))
        row.forgotten.connect(partial(self._store.forget, folder))
        self._column.addWidget(row)
        return row

    def _keep_focus(self, folder: str) -> None:
        """A row that is gone leaves the focus to the list."""
        row = next((row for row in self.rows if row.folder == folder), None)
        (row.button if row is not None else self.browse).setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_theme_changed(self) -> None:
        self.browse.setIcon(self._theme.icon("folder", "muted"))


class FolderRowView(QWidget):
    """A folder to start in. Recent ones can be forgotten, the one that Errand was started in cannot."""

    chosen = Signal()
    forgotten = Signal()

    def __init__(self, theme: Theme, folder: str, *, is_here: bool) -> None:
        super().__init__()
        self.folder = folder
        self._theme = theme
        self._is_ticked = False
        self._path = escape_hidden_line(short_path(folder))
        self._note = tr("current folder") if is_here else ""
        self.button = push_button(self._path, "row")
        self.button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)  # its text is elided
        self.forget = IconButton(theme, "x", tr("Forget {path}").format(path=self._path))
        set_tool_tip(self.button, escape_hidden_line(folder))
        self._note_label = TextLabel(theme, self._note, tone="muted", size=theme.tokens.size_small)
        self._note_label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        set_hbox(
            self.button,
            BoxPart(self._note_label, 1, Qt.AlignmentFlag.AlignRight),
            margins=(0, 0, theme.tokens.space_close, 0),
        )
        self._note_label.setHidden(not is_here)
        set_hbox(self, fill(self.button), self.forget, spacing=theme.tokens.space_tight)
        self.forget.setHidden(is_here)
        self.button.clicked.connect(self.chosen)
        self.forget.clicked.connect(self.forgotten)
        theme.changed.connect(self._show)
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def set_ticked(self, *, is_ticked: bool) -> None:
        self._is_ticked = is_ticked
        self._show()

    def _show(self) -> None:
        self.button.setIcon(self._theme.icon(*(("check", "done_mark") if self._is_ticked else ("folder", "muted"))))
        notes = ", ".join(note for note in (self._note, tr("chosen") if self._is_ticked else "") if note)
        name = tr("Start in {path}").format(path=self._path)
        self.button.setAccessibleName(f"{name} ({notes})" if notes else name)

    def _elide(self) -> None:
        tokens = self._theme.tokens
        note = self._note_label.sizeHint().width() + tokens.space_close if self._note else 0
        room = self.button.width() - tokens.icon_small - self._theme.pixels(_BUTTON_PADDING) - note
        metrics = self.button.fontMetrics()
        self.button.setText(metrics.elidedText(self._path, Qt.TextElideMode.ElideMiddle, room))


def _centred(inside: QWidget, theme: Theme) -> QHBoxLayout:
    """Centred, narrower where there is less room, and as high as its lines: an alignment would make a text one line."""
    inside.setMaximumWidth(theme.pixels(_WIDTH))
    return hbox(stretch(0), fill(inside), stretch(0))
