"""Paths as tools use them: absolute, with `..` and links resolved, so that the policy judges what is really touched."""

import os
from pathlib import Path

from app.engine.tools.base import ToolError, Workplace
from app.engine.tools.plain_text import is_text


def resolve(path: str, workplace: Workplace) -> Path:
    """A path of a tool's argument; a relative one starts at the workspace, `~/` at the home directory."""
    if "\0" in path:
        raise ToolError("A path cannot hold a NUL character.")
    if path == "~" or path.startswith("~/"):
        path = workplace.environment.get("HOME", "~") + path[1:]
    try:
        found = os.path.realpath(workplace.workspace / path)
        if not is_text(found):  # a link leads there
            raise ToolError(f"{path[:200]!r} leads to a name that is not UTF-8. Use the shell for it.")
        return Path(found)
    except (OSError, ValueError) as error:  # a loop of links; characters no file name can have
        raise ToolError(f"{path[:200]!r} is not a usable path: {error}.") from error
