"""What a system prompt is made from, and the folders whose instructions and skills apply to a workspace."""

import os
import sys
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from errand.engine.core.skill_state import SkillState
from errand.protocol.memory import Fact
from errand.protocol.tasks.groups import TaskMode
from errand.system.regular_file import read_beginning


@dataclass(frozen=True, slots=True)
class PromptContext:
    """`role` is the personality's own prompt. `workspace` is a real path, `home` the user's home directory.

    `skills` says which are switched off, and whether those of the workspace are trusted; None uses all. `facts` are
    those for this workspace, oldest first.
    """

    role: str
    workspace: Path
    mode: TaskMode
    home: Path
    skills: SkillState | None = None
    facts: tuple[Fact, ...] = ()


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
