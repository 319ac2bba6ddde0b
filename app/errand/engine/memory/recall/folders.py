"""Which folders' conversations an agent is given from memory: those of its own folder, and what a person shares."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from errand.engine.core.errors import InvalidParams
from errand.engine.core.setting_values import FolderPair
from errand.engine.core.settings import Settings
from errand.protocol.memory import ShareChoice


@dataclass(frozen=True, slots=True)
class FolderView:
    """Memory as seen from one folder, empty for conversations without one; `repository` is the one of git around it.

    Conversations for which a person chose no folder have one each in `own_workspaces`.
    """

    folder: str
    repository: Path | None
    home: Path
    own_workspaces: Path
    shares_all: bool
    asks: bool
    pairs: tuple[FolderPair, ...]

    def may_give(self, other: str) -> bool:
        """Return True for conversations without a folder, and those of this one or of a folder that shares with it.

        What a person keeps apart stays apart, also from a folder around it and where all others share.
        """
        other = self.name_of(other)
        if self._shares(other) is True:
            return True
        if self._is_kept_apart(Path(other)):
            return False
        return not other or self.shares_all or (bool(self.folder) and self._is_same(Path(self.folder), Path(other)))

    def name_of(self, other: str) -> str:
        """Return the folder as decisions name it: empty for those of conversations for which a person chose none."""
        return "" if other and Path(other).is_relative_to(self.own_workspaces) else other

    def is_undecided(self, other: str) -> bool:
        """Return True if the person was not asked yet about these two folders, and may be."""
        return self.asks and self._shares(self.name_of(other)) is None

    def _is_same(self, folder: Path, other: Path) -> bool:
        repository = self.repository
        return (
            folder == other
            or (other.is_relative_to(folder) and self._is_of_projects(folder))
            or (folder.is_relative_to(other) and self._is_of_projects(other))
            or (repository is not None and self._is_of_projects(repository) and other.is_relative_to(repository))
        )

    def _is_of_projects(self, outer: Path) -> bool:
        """Return False for the home folder and all above it: what is inside of these is not one subject."""
        return not self.home.is_relative_to(outer)

    def _shares(self, other: str) -> bool | None:
        """Return what is noted about just these two folders."""
        names = {self.folder, other}
        return next((pair.shares for pair in self.pairs if {pair.first, pair.second} == names), None)

    def _is_kept_apart(self, other: Path) -> bool:
        folder = Path(self.folder)
        decisions = ((pair.first, pair.second) for pair in self.pairs if pair.decided and not pair.shares)
        return any(
            _are_on_both_sides(folder, other, Path(first), Path(second))
            or _are_on_both_sides(other, folder, Path(first), Path(second))
            for first, second in decisions
        )


def _are_on_both_sides(one: Path, other: Path, first: Path, second: Path) -> bool:
    """Return True if `one` is in `first`, and `other` in `second`; if one is around the other, in the outer alone."""
    if not (one.is_relative_to(first) and other.is_relative_to(second)):
        return False
    if second.is_relative_to(first):
        return not one.is_relative_to(second)
    return not (first.is_relative_to(second) and other.is_relative_to(first))


class FolderSharing:
    """The decisions of the person about folders; they are settings.

    `own_workspaces` has the folders of conversations for which a person chose none.
    """

    def __init__(self, settings: Settings, own_workspaces: Path) -> None:
        self._settings = settings
        self._own_workspaces = own_workspaces

    async def seen_from(self, workspace: str) -> FolderView:
        """Return what conversations in a folder may be given. `workspace` may be empty."""
        folder = "" if not workspace or Path(workspace).is_relative_to(self._own_workspaces) else workspace
        repository = await asyncio.to_thread(_repository, Path(folder)) if folder else None
        # Without links, as workspaces are stored.
        home = await asyncio.to_thread(os.path.realpath, Path.home())
        values = self._settings.values
        mode = values.other_folders
        return FolderView(
            folder, repository, Path(home), self._own_workspaces, mode == "share", mode == "ask", values.folder_pairs
        )

    def note_asked(self, folder: str, others: tuple[str, ...]) -> None:
        """Keep these folders apart until the person says otherwise: they are asked once."""
        for other in others:
            self._set(folder, other, shares=False, is_decided=False)

    def decide(self, folder: str, other: str, choice: ShareChoice) -> None:
        """Store what a person decided. Raises `InvalidParams` for folders that are none, or the same."""
        if choice == "share_all":
            self._settings.set("other_folders", "share")
            return
        if folder == other or not all(_is_absolute(each) for each in (folder, other) if each):
            raise InvalidParams("folder, other: name two folders by their absolute paths; empty for none.")
        self._set(folder, other, shares=choice == "share", is_decided=True)

    def _set(self, folder: str, other: str, *, shares: bool, is_decided: bool) -> None:
        names = {folder, other}
        pairs = [pair for pair in self._settings.values.folder_pairs if {pair.first, pair.second} != names]
        self._settings.set_folder_pairs(
            (*pairs, FolderPair(first=folder, second=other, shares=shares, decided=is_decided))
        )


def _is_absolute(folder: str) -> bool:
    """Return True also for folders of another machine: imported conversations name them."""
    return PurePosixPath(folder).is_absolute() or PureWindowsPath(folder).is_absolute()


def _repository(folder: Path) -> Path | None:
    """Return the innermost git repository that a folder is in. Blocking: call it in a thread."""
    for outer in (folder, *folder.parents):
        try:
            if (outer / ".git").exists():
                return outer
        except OSError:
            return None
    return None
