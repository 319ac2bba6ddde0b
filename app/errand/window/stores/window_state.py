"""The window's state between two starts: tabs, sizes, drafts, shortcuts. One file, written atomically."""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from errand.system.regular_file import read_regular
from errand.window.stores.task_options import TaskOptions

_SAVE_AFTER_MS = 400
_MAX_CLOSED = 20
_MAX_RECENT = 5
_MAX_FOLDERS = 6
_MAX_BYTES = 16_000_000
_log = logging.getLogger(__name__)

ThemeMode = Literal["light", "dark", "system"]
Grouping = Literal["day", "folder"]


class ScrollPosition(msgspec.Struct, frozen=True):
    """A scroll position: the top row, as an index among the rows of its node, and the pixels hidden above."""

    node_id: str
    number: int
    offset: int


class WindowSettings(msgspec.Struct):
    """The content of the file; conversations are named by id, "" is the new conversation.

    `windows` has the geometry, in Qt's form, of each conversation in a separate window, `window_places` that of windows
    which were closed or whose conversation is in a tab again. `attached` has paths of files.
    `shortcuts` has the keys of actions that differ from the defaults. `trees` has the width of the tree for each
    conversation that shows it, `reviews` that of the review, `agents` the selected agent of each conversation in which
    the user selected one. `side_by_side` is how diffs are shown.
    `options` are those of the next new conversation. `places` omits conversations that are scrolled to the end.
    `seen_at` is when the window was last in use: a task that ended later is unread at the next start. `unread` has the
    ended tasks that nobody looked at, `read_messages` how many messages of a task were read, while it works or has
    unread ones. `quick_key` is
    true once the desktop has assigned a key for quick tasks: it is requested again at each start. `favourite_models`
    and `recent_models` have model ids, `recent_folders` the folders that tasks were started in; the newest first.
    `compared_models` were last asked together, `scrolls_together` says whether their columns scroll together.
    """

    tabs: list[str] = []
    titles: dict[str, str] = {}
    pinned: list[str] = []
    windows: dict[str, bytes] = {}
    window_places: dict[str, bytes] = {}
    current: str = ""
    closed: list[str] = []
    drafts: dict[str, str] = {}
    attached: dict[str, list[str]] = {}
    places: dict[str, ScrollPosition] = {}
    trees: dict[str, int] = {}
    reviews: dict[str, int] = {}
    side_by_side: bool = False
    agents: dict[str, str] = {}
    width: int = 1180
    height: int = 780
    maximized: bool = False
    sidebar_width: int = 280
    sidebar_hidden: bool = False
    sidebar_grouping: Grouping = "day"
    todo_folded: bool = False
    theme: ThemeMode = "system"
    motion: bool | None = None
    reading_family: str = ""
    reading_size: int = 13
    zoom: int = 100
    options: TaskOptions = TaskOptions()
    favourite_models: list[str] = []
    recent_models: list[str] = []
    recent_folders: list[str] = []
    has_toured: bool = False
    has_chosen_mode: bool = False
    compared_models: list[str] = []
    scrolls_together: bool = True
    unread: list[str] = []
    read_messages: dict[str, int] = {}
    seen_at: datetime = datetime.fromtimestamp(0, UTC)
    told_of_background: bool = False
    quick_key: bool = False
    shortcuts: dict[str, list[str]] = {}


class WindowStateStore(QObject):
    """Change `settings`, then call `save_soon`; `flush` writes at once. Emits `saving` before each write.

    `diff_layout_changed` says whether diffs are side by side.
    """

    saving = Signal()
    diff_layout_changed = Signal(bool)

    def __init__(self, file: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._file = file
        self.settings = _read(file)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SAVE_AFTER_MS)
        self._timer.timeout.connect(self.flush)

    def save_soon(self) -> None:
        if not self._timer.isActive():
            self._timer.start()

    def set_draft(self, key: str, text: str) -> None:
        if text:
            self.settings.drafts[key] = text
        else:
            self.settings.drafts.pop(key, None)
        self.save_soon()

    def set_attached(self, key: str, paths: tuple[str, ...]) -> None:
        """Like `set_draft`, for the attached files."""
        if paths:
            self.settings.attached[key] = list(paths)
        else:
            self.settings.attached.pop(key, None)
        self.save_soon()

    def set_options(self, options: TaskOptions) -> None:
        """Options for the next new conversation. "Allow all" and the network for all are chosen each time."""
        self.settings.options = replace(
            options,
            approve="ask" if options.approve == "all" else options.approve,
            network="asked" if options.network == "on" else options.network,
        )
        self.save_soon()

    def add_recent_model(self, model: str) -> None:
        others = [recent for recent in self.settings.recent_models if recent != model]
        self.settings.recent_models = [model, *others][:_MAX_RECENT]
        self.save_soon()

    def add_recent_folder(self, folder: str) -> None:
        others = [recent for recent in self.settings.recent_folders if recent != folder]
        self.settings.recent_folders = [folder, *others][:_MAX_FOLDERS]
        self.save_soon()

    def forget_recent_folder(self, folder: str) -> None:
        self.settings.recent_folders = [recent for recent in self.settings.recent_folders if recent != folder]
        self.save_soon()

    def set_compared_models(self, models: Sequence[str]) -> None:
        self.settings.compared_models = list(models)
        self.save_soon()

    def set_favourite_model(self, model: str, *, is_favourite: bool) -> None:
        others = [favourite for favourite in self.settings.favourite_models if favourite != model]
        self.settings.favourite_models = [*others, model] if is_favourite else others
        self.save_soon()

    def set_todo_open(self, is_open: bool) -> None:
        self.settings.todo_folded = not is_open
        self.save_soon()

    def set_side_by_side(self, is_side_by_side: bool) -> None:
        self.settings.side_by_side = is_side_by_side
        self.save_soon()
        self.diff_layout_changed.emit(is_side_by_side)

    def add_closed(self, conversation_id: str) -> None:
        """Remember a closed tab for reopening."""
        self.settings.closed = [*self.settings.closed, conversation_id][-_MAX_CLOSED:]
        self.save_soon()

    def flush(self) -> None:
        """Write now. A write error is only logged: the file holds no work."""
        self._timer.stop()
        self.saving.emit()
        scratch = self._file.with_suffix(".tmp")
        try:
            with open(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(self.settings))
            os.replace(scratch, self._file)
        except OSError:
            _log.exception("The window's state could not be written to %s", self._file)


def _read(file: Path) -> WindowSettings:
    """Return the stored state; the defaults if the file cannot be read."""
    try:
        return msgspec.json.decode(read_regular(file, _MAX_BYTES), type=WindowSettings)
    except FileNotFoundError:
        return WindowSettings()
    except (OSError, msgspec.DecodeError) as error:
        _log.warning("The window starts afresh: %s could not be read (%s)", file, error)
        return WindowSettings()
