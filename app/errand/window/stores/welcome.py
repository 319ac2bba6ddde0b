"""What an empty window offers: the folders that a task can start in, the tour, the first choice of an approval mode."""

from pathlib import Path

from PySide6.QtCore import QObject, Signal

from errand.window.stores.session import EngineSession
from errand.window.stores.window_state import WindowStateStore


class WelcomeStore(QObject):
    """`started_in` is the folder of the terminal that opened the window; "" if there is none to offer.

    Whether folders still exist is looked up in a thread: a slow file system must not hold up the window.
    """

    changed = Signal()

    def __init__(self, session: EngineSession, state: WindowStateStore, started_in: str = "") -> None:
        super().__init__()
        self._session = session
        self._state = state
        self._started_in = started_in
        self._existing: frozenset[str] = frozenset()
        session.state_changed.connect(self.look)

    @property
    def started_in(self) -> str:
        return self._started_in if self._started_in in self._existing else ""

    @property
    def recent(self) -> tuple[str, ...]:
        """The folders used last, the newest first."""
        folders = self._state.settings.recent_folders
        return tuple(folder for folder in folders if folder in self._existing and folder != self.started_in)

    @property
    def folders(self) -> tuple[str, ...]:
        """All that are offered."""
        return (self.started_in, *self.recent) if self.started_in else self.recent

    @property
    def has_toured(self) -> bool:
        return self._state.settings.has_toured

    def look(self) -> None:
        """Look again which folders exist."""
        if self._session.is_connected:
            self._session.spawn(self._look())

    def set_started_in(self, folder: str) -> None:
        """Errand was started again, in this folder."""
        if folder:
            self._started_in = folder
            self.changed.emit()
            self.look()

    def add(self, folder: str | None) -> None:
        """A task was started in this folder; None for a new folder of Errand."""
        if folder is not None:
            self._state.add_recent_folder(folder)
            self._existing |= {folder}
            self.changed.emit()

    def forget(self, folder: str) -> None:
        """Offer this folder no longer; nothing happens to the folder itself."""
        self._state.forget_recent_folder(folder)
        self.changed.emit()

    def set_toured(self) -> None:
        if not self.has_toured:
            self._state.settings.has_toured = True
            self._state.save_soon()
            self.changed.emit()

    @property
    def has_chosen_mode(self) -> bool:
        """True once a person has chosen an approval mode, here or below a message field."""
        settings = self._state.settings
        return settings.has_chosen_mode or settings.options.approve != "ask"

    def set_mode_chosen(self) -> None:
        if not self.has_chosen_mode:
            self._state.settings.has_chosen_mode = True
            self._state.save_soon()
            self.changed.emit()

    async def _look(self) -> None:
        from asyncio import to_thread  # takes 30 ms: import it after the first paint

        before = self.folders
        self._existing = await to_thread(_existing, (self._started_in, *self._state.settings.recent_folders))
        if self.folders != before:
            self.changed.emit()


def _existing(folders: tuple[str, ...]) -> frozenset[str]:
    return frozenset(folder for folder in folders if folder and Path(folder).is_dir())


def short_path(folder: str) -> str:
    """Return the path with ~ for the home folder."""
    path, home = Path(folder), Path.home()
    return f"~/{path.relative_to(home)}" if path != home and path.is_relative_to(home) else folder
