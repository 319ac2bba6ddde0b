"""Windows paths, judged by their text alone: drives, shares, device names, streams and short names."""

import re

from errand.engine.core.file_names import is_protected, is_secret
from errand.engine.permissions.files.folder_layout import FolderLayout
from errand.engine.permissions.verdict import Finding, ask, deny

_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:[.: ].*)?", re.IGNORECASE)
_SHORT_NAME = re.compile(r".{1,6}~\d")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_WRITES = frozenset(("write", "patch", "create_dir", "delete"))


def judge_path(operation: str, path: str, folder: str, layout: FolderLayout, may_write: bool) -> Finding:
    """Judge a path in a Windows workspace, as `paths.judge_path` does elsewhere."""
    if not path or "\0" in path or len(path) > 32_000:
        return deny("path", "the path is empty, too long or holds a NUL character")
    if "%" in path or path.startswith("$"):
        return deny("path", f"{path} holds a variable")
    normalized = path.replace("/", "\\")
    for prefix in ("\\\\?\\", "\\\\.\\", "\\??\\"):
        if normalized.startswith(prefix):
            normalized = normalized[len(prefix) :]
            if not _DRIVE.match(normalized):
                return deny("path", f"{path} names a device or a share")
    if normalized == "~" or normalized.startswith("~\\"):
        normalized = layout.home + normalized[1:]
    if normalized.startswith("~") or normalized.startswith("\\\\"):
        return deny("path", f"{path} names a share or another person's folder")
    if normalized.startswith("\\"):
        normalized = folder[:2] + normalized
    elif not _DRIVE.match(normalized):
        if normalized[1:2] == ":":
            return deny("path", f"{path} is relative to the folder of a drive, or a stream of a file")
        normalized = f"{folder}\\{normalized}"
    if ":" in normalized[2:]:
        return deny("path", f"{path} names a stream of a file")
    parts = _parts(normalized)
    if any(_DEVICE.fullmatch(part) for part in parts):
        return deny("path", f"{path} names a device")
    return _judged(operation, path, parts, layout, may_write)


def _judged(operation: str, path: str, parts: tuple[str, ...], layout: FolderLayout, may_write: bool) -> Finding:
    writes = operation in _WRITES
    for closed in (*layout.closed, *layout.private):
        if _is_inside(parts, _parts(closed)):
            return deny("closed folder", f"{closed} is closed to tools")
    workspace = _parts(layout.workspace)
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
    """Return the names of an absolute path, `..` resolved, without the dots and blanks at their ends that Windows
    drops.
    """
    parts: list[str] = []
    for part in re.split(r"[\\/]+", path):
        name = part if part in (".", "..") else part.rstrip(". ")
        if name == "..":
            del parts[max(1, len(parts) - 1) :]
        elif name not in ("", "."):
            parts.append(name)
    return tuple(parts)


def _is_inside(parts: tuple[str, ...], folder: tuple[str, ...]) -> bool:
    return tuple(map(str.casefold, parts[: len(folder)])) == tuple(map(str.casefold, folder))
