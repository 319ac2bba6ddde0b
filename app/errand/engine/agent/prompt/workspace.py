"""The system prompt's workspace part, and the folders whose instructions and skills apply to a workspace."""

import os
import platform
import sys
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, takewhile
from pathlib import Path
from string import Template

from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.core.skill_state import SkillState
from errand.engine.tools.files.file_walk import is_folder
from errand.protocol.context import PromptPart
from errand.protocol.memory import Fact
from errand.protocol.tasks.groups import ApproveMode, TaskMode
from errand.system.regular_file import read_beginning
from errand.text.redaction import redact

_MAX_LISTED_ENTRIES = 40
_MAX_SCANNED_ENTRIES = 2_000
_MAX_NAME_LENGTH = 80


@dataclass(frozen=True, slots=True)
class PromptContext:
    """`role` is the personality's own prompt. `workspace` is a real path, `home` the user's home directory.

    `skills` says which are switched off, and whether those of the workspace are trusted; None uses all. `facts` are
    those for this workspace, oldest first. `is_short`: for a small model.
    """

    role: str
    workspace: Path
    mode: TaskMode
    home: Path
    now: datetime
    approve: ApproveMode = "ask"
    skills: SkillState | None = None
    facts: tuple[Fact, ...] = ()
    is_short: bool = False


def workspace_folders(workspace: Path, home: Path) -> tuple[Path, ...]:
    """Outermost first: from the repository root, else from below the home directory, else the workspace alone.

    The walk up stops at a folder owned by another user: in a shared folder anyone could plant instructions.
    """
    ancestors = _owned_folders((workspace, *workspace.parents))
    for count, folder in enumerate(ancestors, start=1):
        if _exists(folder / ".git"):
            return tuple(reversed(ancestors[:count]))
        if folder == home:
            return tuple(reversed(ancestors[: max(1, count - 1)]))
    return (workspace,)


def read_inside(file: Path, folder: Path, most: int) -> bytes | None:
    """Read at most `most` + 1 bytes; None if there is no such file, or if a link leads out of the folder."""
    try:
        real = file.resolve(strict=True)
        return read_beginning(real, most + 1, follow_links=False) if real.is_relative_to(folder) else None
    except (OSError, RuntimeError):  # RuntimeError: a symlink loop
        return None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # inside an unreadable folder
        return False


def _owned_folders(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    if sys.platform == "win32":
        return folders
    return (folders[0], *takewhile(_is_own, folders[1:]))


def _is_own(folder: Path) -> bool:
    try:
        return folder.stat().st_uid == os.getuid()
    except OSError:
        return False


def workspace_part(context: PromptContext) -> PromptPart:
    facts = Template(prompt_text("workspace")).safe_substitute(
        workspace=_sanitised(str(context.workspace)),
        system=f"{platform.system()} {platform.machine()}",
        date=context.now.strftime("%A, %d %B %Y"),
    )
    lines = (facts, _branch(context), _top_level(context))
    return PromptPart(name="workspace", text="\n".join(line for line in lines if line))


def _top_level(context: PromptContext) -> str:
    """Return the top-level entries; none for the home directory, whose other contents are private."""
    if context.workspace == context.home:
        return ""
    try:
        with os.scandir(context.workspace) as entries:
            looked_at = islice(entries, _MAX_SCANNED_ENTRIES)
            names = sorted(f"{_sanitised(entry.name)}{os.sep if is_folder(entry) else ''}" for entry in looked_at)
    except OSError:
        return ""
    if not names:
        return "- It is empty."
    more = "" if len(names) <= _MAX_LISTED_ENTRIES else f" and {_count(len(names) - _MAX_LISTED_ENTRIES)} more"
    return f"- At its top: {', '.join(f'`{name}`' for name in names[:_MAX_LISTED_ENTRIES])}{more}."


def _count(number: int) -> str:
    return str(number) if number + _MAX_LISTED_ENTRIES < _MAX_SCANNED_ENTRIES else "many"


def _branch(context: PromptContext) -> str:
    """Return the branch as recorded in .git/HEAD; does not start a git process."""
    root = workspace_folders(context.workspace, context.home)[0]
    try:
        head = read_beginning(_git_folder(root / ".git") / "HEAD", 500).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    reference, _, name = head.partition("refs/heads/")
    return (
        f"- Git branch: `{_sanitised(name)}`." if reference == "ref: " and name else "- Git: no branch is checked out."
    )


def _git_folder(place: Path) -> Path:
    """Return the git directory. In a linked work tree, `.git` is a file that names it."""
    if place.is_dir():
        return place
    return place.parent / os.fsdecode(read_beginning(place, 4_000)).removeprefix("gitdir:").strip()


def _sanitised(name: str) -> str:
    """Return a name that cannot break out of its line or its backticks, and has no key."""
    name = redact(name)
    printable_name = "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in name)
    return (
        printable_name
        if len(printable_name) <= _MAX_NAME_LENGTH or os.sep in printable_name
        else f"{printable_name[:_MAX_NAME_LENGTH]}…"
    )
