"""Where a path leads, and what the policy says about it: inside the workspace, outside, closed, protected."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from errand.engine.core.file_names import is_protected, is_secret
from errand.engine.permissions import windows_paths
from errand.engine.permissions.verdict import Finding, ask, deny
from errand.system.paths import USER_SKILLS
from errand.system.regular_file import real_path

PathOperation = Literal["read", "list", "search", "write", "patch", "create_dir", "delete"]
CLOSED_SYSTEM = ("/etc", "/sys", "/proc", "/boot")
# Readable by exactly these names although they are in closed folders: what kind of system this is.
OPEN_FILES = frozenset(("/etc/os-release", "/etc/timezone", "/proc/cpuinfo", "/proc/meminfo"))
CLOSED_AT_HOME = (".ssh", ".gnupg", ".aws")
_WRITES = frozenset(("write", "patch", "create_dir", "delete"))
_MAX_PATH_BYTES, _MAX_NAME_BYTES = 4_096, 255
_MAX_LINKS = 40


@dataclass(frozen=True)
class Places:
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
        """Where a path really is; for the workspace, which is looked up once, without asking the system again."""
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
        """Where the skills of the person are: as it is named, and really."""
        return _named_and_real(tuple(os.path.join(self.home, place) for place in USER_SKILLS))

    def is_of_skill(self, path: str) -> bool:
        """True for a file of a skill of the person, by its full path; commands may read it, and change it as little as
        anything outside the workspace.
        """
        if not os.path.isabs(path) or os.path.normpath(path) != path or not self._is_below_skills(path):
            return False
        real = real_path(path)
        return self._is_below_skills(real) and self.closed_folder_of(real) is None and not is_secret(real)

    def _is_below_skills(self, path: str) -> bool:
        return any(path != folder and self.is_inside(path, folder) for folder in self.skills)

    def closed_folder_of(self, path: str) -> str | None:
        """The closed folder that holds the path; a workspace that the app made is open though it is in its data."""
        if self.is_own_workspace and self.in_workspace(path):
            return None
        return next((folder for folder in self.closed_folders if self.is_inside(path, folder)), None)

    def holds_closed(self, path: str) -> bool:
        """True for a folder above a closed one, such as the home directory."""
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
    """For folders of the app, which stay where they are."""
    return real_path(folder)


@cache
def _named_and_real(folders: tuple[str, ...]) -> tuple[str, ...]:
    named = [os.path.normpath(folder) for folder in folders]
    return tuple(dict.fromkeys([*named, *map(real_path, folders)]))


def closed_by_default(home: str) -> tuple[str, ...]:
    return (*CLOSED_SYSTEM, *(os.path.join(home, name) for name in CLOSED_AT_HOME))


def judge_path(operation: PathOperation, path: str, folder: str, places: Places, may_write: bool) -> Finding:
    """Judge the path of a file tool; relative paths start at `folder`. `may_write`: writing here was granted."""
    if places.is_windows:
        return windows_paths.judge_path(operation, path, folder, places, may_write)
    if unusable := unusable_path(path):
        return deny("path", unusable)
    if path.startswith("~") and path != "~" and not path.startswith("~/"):
        return deny("path", f"{path} names the home directory of somebody else")
    given = os.path.join(folder, _with_home(path, places.home))
    named, real = _normal(given), real_path(given)
    writes = operation in _WRITES
    for place in (named, real, given, *_open_files_on_the_way(named, real)):
        if closed := places.closed_folder_of(place):
            return deny("closed folder", f"{closed} is closed to tools")
    if not places.in_workspace(named) or not places.in_workspace(real):
        return _outside(path, named, real, places, writes)
    parts = _below(real, places)
    if writes and (is_protected(parts) or is_protected(_below(named, places))):
        return ask("path", f"{path} configures tools or agents", "high")
    if operation == "delete" and not parts:
        return ask("path", "deletes the whole workspace", "high")
    if is_secret(named) or is_secret(real):
        return ask("path", f"{path} looks like a secret", "high")
    if not writes and places.holds_closed(real):
        return ask("path", f"{path} holds folders that are closed to tools")
    if writes and not may_write:
        return ask("path", "changes a file of the workspace", "low")
    return Finding("allow", "path", f"{'writing' if writes else 'reading'} inside the workspace")


def judge_operand(
    word: str, folders: Sequence[str], places: Places, *, is_known: bool, is_read: bool = False
) -> Finding | None:
    """Judge a word of a command as a path from each folder it may run in; None if there is nothing against it.

    `is_known`: the program is known to take a path here. Other words may be anything, so only what is plainly a
    path outside is asked about. `is_read`: the program only reads what the path names.
    """
    if is_read and word in OPEN_FILES:
        return None
    if unusable := unusable_path(word):
        return ask("operand", unusable) if is_known else None
    for folder in folders:
        given = os.path.join(folder, word)
        named, real = _normal(given), real_path(given)
        for place in (named, real, given, *_open_files_on_the_way(named, real)):
            if closed := places.closed_folder_of(place):
                reason = f"{word} is in {closed}, which is closed to tools"
                return deny("closed folder", reason) if is_known else ask("operand", reason, "high")
        if not places.in_workspace(named) or not places.in_workspace(real):
            return ask("operand", f"{word} is outside the workspace")
        if is_secret(named) or is_secret(real):
            return ask("operand", f"{word} looks like a secret", "high")
        if is_known and places.holds_closed(real):
            return ask("operand", f"{word} holds folders that are closed to tools")
    return None


def _normal(path: str) -> str:
    """The path without `.` and `..`; two slashes at its beginning are one on all systems that we know."""
    return "/" + os.path.normpath(path).lstrip("/") if path.startswith("/") else os.path.normpath(path)


def _open_files_on_the_way(named: str, real: str) -> tuple[str, ...]:
    """The open files by which a link leads elsewhere: they are open by their own names alone."""
    steps: list[str] = []
    while named != real and len(steps) < _MAX_LINKS:
        try:
            target = os.readlink(named)
        except OSError:
            break
        named = _normal(os.path.join(real_path(os.path.dirname(named)), target))
        steps.append(named)
    return tuple(step for step in steps if step in OPEN_FILES)


def _outside(path: str, named: str, real: str, places: Places, writes: bool) -> Finding:
    if places.in_workspace(named):
        reason = f"{path} is a link that leaves the workspace"
        return deny("path", reason) if writes else ask("path", reason)
    if ".." in path.split("/"):
        return deny("path", f"{path} leaves the workspace by ..")
    return ask(
        "path", f"{'writes' if writes else 'reads'} outside the workspace: {real}", "high" if writes else "medium"
    )


def unusable_path(path: str) -> str | None:
    """Why a text cannot be a path; None if it can."""
    if "\0" in path:
        return "a path cannot hold a NUL character"
    try:
        data = path.encode("utf-8", "surrogateescape")  # a name need not be UTF-8
    except UnicodeEncodeError:
        return "the path is not text"
    if not path or len(data) > _MAX_PATH_BYTES or any(len(part) > _MAX_NAME_BYTES for part in data.split(b"/")):
        return "the path is empty or too long"
    return None


def _below(path: str, places: Places) -> tuple[str, ...]:
    root = next(root for root in places.roots if places.is_inside(path, root))
    return tuple(part for part in path[len(root) :].split("/") if part)


def _with_home(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith("~/") else path
