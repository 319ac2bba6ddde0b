"""The folders of a task that decide about paths: the workspace, the home folder, closed folders, the app's own data."""

import os
from dataclasses import dataclass
from functools import cache, cached_property

from errand.engine.core.file_names import is_secret
from errand.system.paths import USER_SKILLS
from errand.system.regular_file import real_path

CLOSED_SYSTEM = ("/etc", "/sys", "/proc", "/boot")
CLOSED_AT_HOME = (".ssh", ".gnupg", ".aws")


@dataclass(frozen=True)
class FolderLayout:
    """The folders that decide about paths. `closed` are blocked for all tools; `private` is the app's own data.

    `own_workspaces` is the folder in that data where the app makes workspaces; one of these is open.
    """

    workspace: str
    home: str
    closed: tuple[str, ...]
    private: tuple[str, ...] = ()
    own_workspaces: str = ""
    # As on macOS; names in Windows paths never differ by case.
    ignores_case: bool = False
    is_windows: bool = False

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """The workspace as it was named, and where it really is."""
        return tuple(dict.fromkeys((os.path.normpath(self.workspace), real_path(self.workspace))))

    def real(self, path: str) -> str:
        """Return the real path; that of the workspace is looked up once, without asking the system again."""
        return path if path == self.roots[-1] else real_path(path)

    @property
    def closed_folders(self) -> tuple[str, ...]:
        return _named_and_real((*self.closed, *self.private))

    @cached_property
    def is_own_workspace(self) -> bool:
        """True if the app made the workspace. Its data stays closed as a workspace: it holds keys."""
        own = self.own_workspaces
        # The last root is where the workspace really is.
        return bool(own) and _real(own) not in self.roots and self.is_inside(self.roots[-1], _real(own))

    @cached_property
    def skills(self) -> tuple[str, ...]:
        """Return the folders of the person's skills, as named and as real paths."""
        return _named_and_real(tuple(os.path.join(self.home, folder) for folder in USER_SKILLS))

    def is_of_skill(self, path: str) -> bool:
        """Return True for a file of a skill of the person, by its full path; commands may read it, and change it as
        little as anything outside the workspace.
        """
        if not os.path.isabs(path) or os.path.normpath(path) != path or not self._is_below_skills(path):
            return False
        real = real_path(path)
        return self._is_below_skills(real) and self.closed_folder_of(real) is None and not is_secret(real)

    def _is_below_skills(self, path: str) -> bool:
        return any(path != folder and self.is_inside(path, folder) for folder in self.skills)

    def closed_folder_of(self, path: str) -> str | None:
        """Return the closed folder that holds the path; a workspace that the app made is open though it is in its
        data.
        """
        if self.is_own_workspace and self.in_workspace(path):
            return None
        return next((folder for folder in self.closed_folders if self.is_inside(path, folder)), None)

    def holds_closed(self, path: str) -> bool:
        """Return True for a folder above a closed one, such as the home directory."""
        return any(self.is_inside(folder, path) for folder in self.closed_folders)

    def in_workspace(self, path: str) -> bool:
        return any(self.is_inside(path, root) for root in self.roots)

    def is_inside(self, path: str, folder: str) -> bool:
        """Compares components, as text."""
        if self.ignores_case:
            path, folder = path.casefold(), folder.casefold()
        return path == folder or path.startswith(folder.rstrip("/") + "/")


@cache
def _real(folder: str) -> str:
    """Return the real path of a folder of the app; such folders stay where they are."""
    return real_path(folder)


@cache
def _named_and_real(folders: tuple[str, ...]) -> tuple[str, ...]:
    named = [os.path.normpath(folder) for folder in folders]
    return tuple(dict.fromkeys([*named, *map(real_path, folders)]))


def closed_by_default(home: str) -> tuple[str, ...]:
    return (*CLOSED_SYSTEM, *(os.path.join(home, name) for name in CLOSED_AT_HOME))
