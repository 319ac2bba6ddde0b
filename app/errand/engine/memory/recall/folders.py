"""Which folders' conversations an agent is given from memory: those of its own folder, and what a person shares."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from errand.engine.core.errors import InvalidParams
from errand.engine.core.setting_values import FolderPair
from errand.engine.core.settings import Settings
from errand.protocol.memory import ShareChoice


@dataclass(frozen=True, slots=True)
class FolderView:
    """Memory as seen from one folder. `repository` is the git repository it is in, if any."""

    folder: Path
    repository: Path | None
    home: Path
    shares_all: bool
    asks: bool
    pairs: tuple[FolderPair, ...]

    def may_give(self, other: str) -> bool:
        """Return True for conversations without a folder, and those of this one or of a folder that shares with it."""
        return not other or self.shares_all or self._is_same(Path(other)) or self._decision(other) is True

    def is_undecided(self, other: str) -> bool:
        """Return True if the person was not asked yet about these two folders, and may be."""
        return self.asks and self._decision(other) is None

    def _is_same(self, other: Path) -> bool:
        repository = self.repository
        return (
            self.folder == other
            or (other.is_relative_to(self.folder) and self._is_of_projects(self.folder))
            or (self.folder.is_relative_to(other) and self._is_of_projects(other))
            or (repository is not None and self._is_of_projects(repository) and other.is_relative_to(repository))
        )

    def _is_of_projects(self, outer: Path) -> bool:
        """Return False for the home folder and all above it: what is inside of these is not one subject."""
        return not self.home.is_relative_to(outer)

    def _decision(self, other: str) -> bool | None:
        names = {str(self.folder), other}
        return next((pair.shares for pair in self.pairs if {pair.first, pair.second} == names), None)


class FolderSharing:
    """The decisions of the person about folders; they are settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def seen_from(self, workspace: str) -> FolderView:
        """Return what conversations in a folder may be given. `workspace` may be empty."""
        folder = Path(workspace or "/")
        repository = await asyncio.to_thread(_repository, folder) if workspace else None
        values = self._settings.values
        mode = values.other_folders
        return FolderView(folder, repository, Path.home(), mode == "share", mode == "ask", values.folder_pairs)

    def note_asked(self, folder: str, others: tuple[str, ...]) -> None:
        """Keep these folders apart until the person says otherwise: they are asked once."""
        for other in others:
            self._set(folder, other, shares=False)

    def decide(self, folder: str, other: str, choice: ShareChoice) -> None:
        """Store what a person decided. Raises `InvalidParams` for folders that are none, or the same."""
        if choice == "share_all":
            self._settings.set("other_folders", "share")
            return
        if not Path(folder).is_absolute() or not Path(other).is_absolute() or folder == other:
            raise InvalidParams("folder, other: name two folders by their absolute paths.")
        self._set(folder, other, shares=choice == "share")

    def _set(self, folder: str, other: str, *, shares: bool) -> None:
        names = {folder, other}
        pairs = [pair for pair in self._settings.values.folder_pairs if {pair.first, pair.second} != names]
        self._settings.set_folder_pairs((*pairs, FolderPair(first=folder, second=other, shares=shares)))


def _repository(folder: Path) -> Path | None:
    """Return the innermost git repository that a folder is in. Blocking: call it in a thread."""
    for outer in (folder, *folder.parents):
        try:
            if (outer / ".git").exists():
                return outer
        except OSError:
            return None
    return None
