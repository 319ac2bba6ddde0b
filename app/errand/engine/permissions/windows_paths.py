"""Windows paths, judged by their text alone: drives, shares, device names, streams and short names."""

import re
from typing import TYPE_CHECKING

from errand.engine.core.file_names import is_protected, is_secret
from errand.engine.permissions.verdict import Finding, ask, deny

if TYPE_CHECKING:
    from errand.engine.permissions.paths import Places

_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:[.: ].*)?", re.IGNORECASE)
_SHORT_NAME = re.compile(r".{1,6}~\d")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_WRITES = frozenset(("write", "patch", "create_dir", "delete"))


def judge_path(operation: str, path: str, folder: str, places: "Places", may_write: bool) -> Finding:
    """As `paths.judge_path`, for a Windows workspace."""
    if not path or "\0" in path or len(path) > 32_000:
        return deny("path", "the path is empty, too long or holds a NUL character")
    if "%" in path or path.startswith("$"):
        return deny("path", f"{path} holds a variable")
    given = path.replace("/", "\\")
    for prefix in ("\\\\?\\", "\\\\.\\", "\\??\\"):
        if given.startswith(prefix):
            given = given[len(prefix) :]
            if not _DRIVE.match(given):
                return deny("path", f"{path} names a device or a share")
    if given == "~" or given.startswith("~\\"):
        given = places.home + given[1:]
    if given.startswith("~") or given.startswith("\\\\"):
        return deny("path", f"{path} names a share or another person's folder")
    if given.startswith("\\"):
        given = folder[:2] + given
    elif not _DRIVE.match(given):
        if given[1:2] == ":":
            return deny("path", f"{path} is relative to the folder of a drive, or a stream of a file")
        given = f"{folder}\\{given}"
    if ":" in given[2:]:
        return deny("path", f"{path} names a stream of a file")
    parts = _parts(given)
    if any(_DEVICE.fullmatch(part) for part in parts):
        return deny("path", f"{path} names a device")
    return _judged(operation, path, parts, places, may_write)


def _judged(operation: str, path: str, parts: tuple[str, ...], places: "Places", may_write: bool) -> Finding:
    writes = operation in _WRITES
    for closed in (*places.closed, *places.private):
        if _is_inside(parts, _parts(closed)):
            return deny("closed folder", f"{closed} is closed to tools")
    workspace = _parts(places.workspace)
    if not _is_inside(parts, workspace):
        if ".." in re.split(r"[\\/]", path):
            return deny("path", f"{path} leaves the workspace by ..")
        return ask("path", f"{path} is outside the workspace", "high" if writes else "medium")
    below = parts[len(workspace) :]
    if writes and is_protected(below):
        return ask("path", f"{path} configures tools or agents", "high")
    if operation == "delete" and not below:
        return ask("path", "deletes the whole workspace", "high")
    if any(_SHORT_NAME.match(part) for part in below):
        return ask("path", f"{path} may be the short form of another name")
    if is_secret("/".join(below)):
        return ask("path", f"{path} looks like a secret", "high")
    if writes and not may_write:
        return ask("path", "changes a file of the workspace", "low")
    return Finding("allow", "path", f"{'writing' if writes else 'reading'} inside the workspace")


def _parts(path: str) -> tuple[str, ...]:
    """The names of an absolute path, `..` resolved, without the dots and blanks at their ends that Windows drops."""
    found: list[str] = []
    for part in re.split(r"[\\/]+", path):
        name = part if part in (".", "..") else part.rstrip(". ")
        if name == "..":
            del found[max(1, len(found) - 1) :]
        elif name not in ("", "."):
            found.append(name)
    return tuple(found)


def _is_inside(parts: tuple[str, ...], folder: tuple[str, ...]) -> bool:
    return tuple(map(str.casefold, parts[: len(folder)])) == tuple(map(str.casefold, folder))
