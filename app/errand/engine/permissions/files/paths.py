"""Where a path leads, and what the policy says about it: inside the workspace, outside, closed, protected."""

import os
from collections.abc import Sequence
from typing import Literal

from errand.engine.core.file_names import is_protected, is_secret
from errand.engine.permissions.files import windows_paths
from errand.engine.permissions.files.folder_layout import FolderLayout
from errand.engine.permissions.verdict import Finding, ask, deny
from errand.system.regular_file import real_path

PathOperation = Literal["read", "list", "search", "write", "patch", "create_dir", "delete"]
# Readable by exactly these names although they are in closed folders: what kind of system this is.
OPEN_FILES = frozenset(("/etc/os-release", "/etc/timezone", "/proc/cpuinfo", "/proc/meminfo"))
_WRITES = frozenset(("write", "patch", "create_dir", "delete"))
_MAX_PATH_BYTES, _MAX_NAME_BYTES = 4_096, 255
_MAX_LINKS = 40


def judge_path(operation: PathOperation, path: str, folder: str, layout: FolderLayout, may_write: bool) -> Finding:
    """Judge the path of a file tool; relative paths start at `folder`. `may_write`: writing here was granted."""
    if layout.is_windows:
        return windows_paths.judge_path(operation, path, folder, layout, may_write)
    if unusable := unusable_path(path):
        return deny("path", unusable)
    if path.startswith("~") and path != "~" and not path.startswith("~/"):
        return deny("path", f"{path} names the home directory of somebody else")
    joined = os.path.join(folder, _with_home(path, layout.home))
    named, real = _normal(joined), real_path(joined)
    writes = operation in _WRITES
    for candidate in (named, real, joined, *_open_files_on_the_way(named, real)):
        if closed := layout.closed_folder_of(candidate):
            return deny("closed folder", f"{closed} is closed to tools")
    if not layout.in_workspace(named) or not layout.in_workspace(real):
        return _outside(path, named, real, layout, writes)
    parts = _below(real, layout)
    if writes and (is_protected(parts) or is_protected(_below(named, layout))):
        return ask("path", f"{path} configures tools or agents", "high")
    if operation == "delete" and not parts:
        return ask("path", "deletes the whole workspace", "high")
    if is_secret(named) or is_secret(real):
        return ask("path", f"{path} looks like a secret", "high")
    if not writes and layout.holds_closed(real):
        return ask("path", f"{path} holds folders that are closed to tools")
    if writes and not may_write:
        return ask("path", "changes a file of the workspace", "low")
    return Finding("allow", "path", f"{'writing' if writes else 'reading'} inside the workspace")


def judge_operand(
    word: str, folders: Sequence[str], layout: FolderLayout, *, is_known: bool, is_read: bool = False
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
        joined = os.path.join(folder, word)
        named, real = _normal(joined), real_path(joined)
        for candidate in (named, real, joined, *_open_files_on_the_way(named, real)):
            if closed := layout.closed_folder_of(candidate):
                reason = f"{word} is in {closed}, which is closed to tools"
                return deny("closed folder", reason) if is_known else ask("operand", reason, "high")
        if not layout.in_workspace(named) or not layout.in_workspace(real):
            return ask("operand", f"{word} is outside the workspace")
        if is_secret(named) or is_secret(real):
            return ask("operand", f"{word} looks like a secret", "high")
        if is_known and layout.holds_closed(real):
            return ask("operand", f"{word} holds folders that are closed to tools")
    return None


def _normal(path: str) -> str:
    """Return the path without `.` and `..`; two slashes at its beginning are one on all systems that we know."""
    return "/" + os.path.normpath(path).lstrip("/") if path.startswith("/") else os.path.normpath(path)


def _open_files_on_the_way(named: str, real: str) -> tuple[str, ...]:
    """Return the open files by which a link leads elsewhere: they are open by their own names alone."""
    steps: list[str] = []
    while named != real and len(steps) < _MAX_LINKS:
        try:
            target = os.readlink(named)
        except OSError:
            break
        named = _normal(os.path.join(real_path(os.path.dirname(named)), target))
        steps.append(named)
    return tuple(step for step in steps if step in OPEN_FILES)


def _outside(path: str, named: str, real: str, layout: FolderLayout, writes: bool) -> Finding:
    if layout.in_workspace(named):
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


def _below(path: str, layout: FolderLayout) -> tuple[str, ...]:
    root = next(root for root in layout.roots if layout.is_inside(path, root))
    return tuple(part for part in path[len(root) :].split("/") if part)


def _with_home(path: str, home: str) -> str:
    return home + path[1:] if path == "~" or path.startswith("~/") else path
