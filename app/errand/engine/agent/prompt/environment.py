"""Where an agent works, as it reads it with the message of a person: all of it first, later what has changed.

It changes more often than the system prompt and the tools, so it stands behind them (decision 84), and in it the rarest
to change stands first: what a server keeps of an earlier prompt lasts up to the first difference. It keeps that for
minutes or hours, in which a folder changes and the date does not.
"""

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from itertools import islice
from pathlib import Path

import msgspec

from errand.engine.agent.prompt.workspace import workspace_folders
from errand.engine.core.errors import FolderNotAnswering
from errand.engine.core.messages import in_tags
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.tools.files.file_walk import is_folder
from errand.protocol.blocks import EnvironmentBlock
from errand.system.regular_file import read_beginning
from errand.text.redaction import redact

_MAX_LISTED_ENTRIES = 40
_MAX_SCANNED_ENTRIES = 2_000
_MAX_NAME_LENGTH = 80
_PATIENCE_S = 2.0
_CHANGED = "What has changed:"


async def environment_for_task(workspace: Path, before: EnvironmentBlock | None) -> EnvironmentBlock | None:
    """Return what an agent is told of the workspace: what differs from `before`, else all; None if nothing does.

    Of a folder that does not answer, only its name is told: a start does not wait for it.
    """
    now = datetime.now().astimezone()
    try:
        current = await in_workspace(workspace, lambda: read_environment(workspace, Path.home(), now), _PATIENCE_S)
    except FolderNotAnswering:
        current = _environment(workspace, now)
    return current if before is None else changes_since(before, current)


def read_environment(workspace: Path, home: Path, now: datetime) -> EnvironmentBlock:
    """Return the whole environment. `workspace` is a real path. Blocking: call it in a thread."""
    names = None if workspace == home else _top_level_names(workspace)  # what a home directory has is private
    return _environment(workspace, now, _git_branch(workspace, home), names)


def _environment(
    workspace: Path, now: datetime, git_branch: str | None = None, names: Mapping[str, int] | None = None
) -> EnvironmentBlock:
    """Return the block. `names` are those at the top with the times of their changes, None if they are not told."""
    environment = EnvironmentBlock(
        text="",
        folder=_sanitised(str(workspace)),
        system=f"{platform.system()} {platform.machine()}",
        date=now.date().isoformat(),
        git_branch=git_branch,
        entries=None if names is None else _listed(names),
        entry_count=0 if names is None else len(names),
    )
    lines = (
        f"- Your workspace is `{environment.folder}`; relative paths start there.",
        f"- The system is {environment.system}.",
        _branch_line(environment),
        f"- {_day(environment)}",
        _listing_line(environment),
    )
    return msgspec.structs.replace(environment, text=_text(*lines), brief=_day(environment))


def changes_since(before: EnvironmentBlock, current: EnvironmentBlock) -> EnvironmentBlock | None:
    """Return what an agent is told that knows the environment `before`: all in another folder, else what differs."""
    if (before.folder, before.system) != (current.folder, current.system):
        return current
    lines = [
        _branch_line(current) if current.git_branch != before.git_branch else "",
        *_listing_changes(before, current),
        f"- {_day(current)}" if current.date != before.date else "",
    ]
    if not any(lines):
        return None
    brief = _day(current) if current.date != before.date else ""
    return msgspec.structs.replace(current, text=_text(_CHANGED, *lines), brief=brief, is_change=True)


def _text(*lines: str) -> str:
    return in_tags("\n".join(filter(None, lines)), "environment")


def _branch_line(environment: EnvironmentBlock) -> str:
    match environment.git_branch:
        case None:
            return ""
        case "":
            return "- Git: no branch is checked out."
        case branch:
            return f"- Git branch: `{branch}`."


def _day(environment: EnvironmentBlock) -> str:
    """Return the day, which is all that a small model is told: it takes names that it reads for those asked for."""
    return f"Today is {date.fromisoformat(environment.date):%A, %d %B %Y}."


def _listing_line(environment: EnvironmentBlock) -> str:
    if environment.entries is None:
        return ""
    if not environment.entries:
        return "- It is empty."
    return f"- At its top: {_quoted(environment.entries)}{_more(environment.entry_count - len(environment.entries))}."


def _listing_changes(before: EnvironmentBlock, current: EnvironmentBlock) -> tuple[str, ...]:
    """Return what is new or gone, if both listings are whole."""
    if not _is_listed_whole(before) or not _is_listed_whole(current):
        return ()
    earlier, now = before.entries or (), current.entries or ()
    new, gone = [name for name in now if name not in earlier], [name for name in earlier if name not in now]
    return (
        f"- New at the top of the workspace: {_quoted(new)}." if new else "",
        f"- No longer there: {_quoted(gone)}." if gone else "",
    )


def _is_listed_whole(environment: EnvironmentBlock) -> bool:
    return environment.entries is not None and len(environment.entries) == environment.entry_count


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _more(count: int) -> str:
    if not count:
        return ""
    return f" and {count if count + _MAX_LISTED_ENTRIES < _MAX_SCANNED_ENTRIES else 'many'} more"


def _listed(names: Mapping[str, int]) -> tuple[str, ...]:
    """Return the first of these names, the ones that changed last at the end: a new file does not move the others."""
    chosen = sorted(names)[:_MAX_LISTED_ENTRIES]
    return tuple(sorted(chosen, key=lambda name: names[name]))


def _top_level_names(workspace: Path) -> dict[str, int] | None:
    """Return the names at the top of a folder, each with the time of its last change; None if it cannot be read."""
    try:
        with os.scandir(workspace) as entries:
            looked_at = islice(entries, _MAX_SCANNED_ENTRIES)
            return {
                f"{_sanitised(entry.name)}{os.sep if is_folder(entry) else ''}": _changed_at(entry)
                for entry in looked_at
            }
    except OSError:
        return None


def _changed_at(entry: "os.DirEntry[str]") -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _git_branch(workspace: Path, home: Path) -> str | None:
    """Return the branch as recorded in .git/HEAD; does not start a git process."""
    root = workspace_folders(workspace, home)[0]
    try:
        head = read_beginning(_git_folder(root / ".git") / "HEAD", 500).decode("utf-8", "replace").strip()
    except OSError:
        return None
    reference, _, name = head.partition("refs/heads/")
    return _sanitised(name) if reference == "ref: " else ""


def _git_folder(path: Path) -> Path:
    """Return the git directory. In a linked work tree, `.git` is a file that names it."""
    if path.is_dir():
        return path
    return path.parent / os.fsdecode(read_beginning(path, 4_000)).removeprefix("gitdir:").strip()


def _sanitised(name: str) -> str:
    """Return a name that cannot break out of its line or its backticks, and has no key."""
    name = redact(name)
    printable_name = "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in name)
    return (
        printable_name
        if len(printable_name) <= _MAX_NAME_LENGTH or os.sep in printable_name
        else f"{printable_name[:_MAX_NAME_LENGTH]}…"
    )
