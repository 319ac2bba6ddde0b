"""Paths of tools: absolute, with `..` and links resolved, and opened without following links created since.

The path that the policy checked and a person allowed is the path used, even if a folder is replaced by a link
meanwhile.
"""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from errand.engine.tools.context import ToolContext
from errand.engine.tools.files.quoted_name import quoted, unquoted
from errand.engine.tools.plain_text import is_text
from errand.engine.tools.results import ToolError
from errand.system.regular_file import real_path

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# The longest path that Linux takes, PATH_MAX; resolving one of a million characters takes minutes.
_MAX_PATH_LENGTH = 4_096
_MAX_QUOTED_LENGTH = 4 * _MAX_PATH_LENGTH + 2
_STEPS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")


def resolve(path: str, context: ToolContext, *, must_be_text: bool = True) -> Path:
    """Resolve the path of a tool argument; a relative one starts at the workspace, `~/` at the home directory.

    A name that is not UTF-8 is refused unless `must_be_text` is false: it can be neither stored nor sent.
    """
    path = named(path, context)
    if "\0" in path:
        raise ToolError("A path cannot hold a NUL character.")
    if len(path) > _MAX_PATH_LENGTH:
        raise ToolError(f"A path of {len(path):,} characters: the system takes {_MAX_PATH_LENGTH:,} at most.")
    if path == "~" or path.startswith("~/"):
        path = context.environment.get("HOME", "~") + path[1:]
    try:
        resolved = real_path(os.path.join(context.workspace, path))
        if must_be_text and not is_text(resolved):  # also if a link points there
            raise ToolError(
                f"{quoted(path[:200])} is or leads to a name that is not UTF-8. It can be read, listed and searched "
                "here; to change it, rename it first with the shell."
            )
        if os.path.islink(resolved):
            raise ToolError(f"{path[:200]!r} is a link that leads to itself, in a circle of links, or may not be read.")
        return Path(resolved)
    except (OSError, ValueError) as error:  # a loop of links, or characters not allowed in a file name
        raise ToolError(f"{path[:200]!r} is not a usable path: {error}.") from error


def named(path: str, context: ToolContext) -> str:
    """Return the path that an argument names: a quoted one without its quotes, unless there is a file with them."""
    inner = unquoted(path) if path.startswith('"') and len(path) <= _MAX_QUOTED_LENGTH else None
    return path if inner is None or os.path.lexists(context.workspace / path) else inner


@contextmanager
def opened_folder(folder: Path, *, make: bool = False) -> Generator[int | None]:
    """A descriptor of the folder at a resolved path, for opening names in it; `make` creates missing folders.

    Raises ToolError if a component has become a link, other OSErrors as the system does. None on Windows, which
    cannot open names relative to a folder: the full path is used there.
    """
    if not _STEPS:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        yield None
        return
    descriptor = os.open(folder.anchor, _FOLDER)
    try:
        for name in folder.parts[1:]:
            inner = _step(descriptor, name, folder, make=make)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def name_in(folder: int | None, path: Path) -> Path:
    """Return the name of `path` relative to its opened folder."""
    return path if folder is None else Path(path.name or ".")


def with_real_path(path: Path) -> ToolError:
    return ToolError(
        f"{path} leads to another place than when this call was checked. Nothing was done. If it is still right, make "
        "the call again: it is checked anew.",
        "leads to another place than the one that was allowed",
    )


def _step(folder: int, name: str, path: Path, *, make: bool) -> int:
    try:
        with suppress(*((FileNotFoundError,) if make else ())):
            return os.open(name, _FOLDER, dir_fd=folder)
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        with suppress(OSError):
            if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                raise with_real_path(path) from error
        raise
