"""The exclude files of git that lie outside of the folders: that of a repository, and that of the person.

Settings are read from the person's own files alone: a repository could name any file as its `core.excludesFile`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from errand.system.regular_file import read_beginning

_SYSTEM = Path("/etc/gitconfig")
_MAX_FILE_BYTES = 100_000
_MAX_INCLUDED_FILES = 10
_SECTION = re.compile(r'\[\s*([\w.-]+)(\s+"(?:[^"\\]|\\.)*")?\s*\]')
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"|\\(.)|([^"\\#;]+)')
_BACKSLASH = re.compile(r"\\(.)")
_GITDIR = "gitdir:"


def repository_excludes(folder: Path) -> Path:
    """`info/exclude` of the repository in this folder, which may be a worktree or a submodule."""
    git = folder / ".git"
    pointer = _first_line(git)
    if not pointer.startswith(_GITDIR):
        return git / "info" / "exclude"
    git = folder / pointer.removeprefix(_GITDIR).strip()
    return git / _first_line(git / "commondir") / "info" / "exclude"


def personal_excludes(environment: Mapping[str, str]) -> Path | None:
    """Return the file of `core.excludesFile`, or the one that git reads without that setting."""
    home = environment.get("HOME", "")
    of_programs = environment.get("XDG_CONFIG_HOME") or (home and os.path.join(home, ".config"))
    files = [Path(of_programs, "git", "config")] if of_programs else []
    files += [Path(home, ".gitconfig")] if home else []
    if environment.get("GIT_CONFIG_GLOBAL"):
        files = [Path(environment["GIT_CONFIG_GLOBAL"])]
    if not environment.get("GIT_CONFIG_NOSYSTEM"):
        files.insert(0, _SYSTEM)
    excludes_file = Path(of_programs, "git", "ignore") if of_programs else None
    included: list[Path] = []
    for file in files:
        for value in _excludes_files(file, home, included):
            excludes_file = _expanded(value, home)
    return excludes_file


def _excludes_files(file: Path, home: str, included: list[Path]) -> Iterator[str]:
    """Yield the values of `core.excludesFile`, also those of included files; the last one holds."""
    section = ""
    for line in _text(file).splitlines():
        line = line.strip()
        if header := _SECTION.match(line):
            section, line = "" if header[2] else header[1].lower(), line[header.end() :].strip()
        name, _, value = line.partition("=")
        match section, name.strip().lower():
            case "core", "excludesfile":
                yield _value(value)
            case "include", "path" if len(included) < _MAX_INCLUDED_FILES:
                inner = _expanded(_value(value), home, file.parent)
                if inner is not None:
                    included.append(inner)
                    yield from _excludes_files(inner, home, included)
            case _:
                pass


def _value(text: str) -> str:
    """Without quotes, escapes, and a comment behind it."""
    parts: list[str] = []
    at = 0
    text = text.strip()
    while match := _VALUE.match(text, at):
        quoted, escaped, plain = match.groups()
        parts.append(_BACKSLASH.sub(r"\1", quoted) if quoted is not None else escaped or plain)
        at = match.end()
    return "".join(parts).strip()


def _expanded(path: str, home: str, folder: Path | None = None) -> Path | None:
    """None for a path that depends on where git runs, or on another person's home directory."""
    if not path or "\0" in path:
        return None
    if path.startswith("~/"):
        return Path(home, path[2:]) if home else None
    if path.startswith("~"):
        return None
    return Path(path) if os.path.isabs(path) else folder / path if folder is not None else None


def _first_line(file: Path) -> str:
    return _text(file).partition("\n")[0].strip().replace("\0", "")


def _text(file: Path) -> str:
    try:
        return os.fsdecode(read_beginning(file, _MAX_FILE_BYTES))
    except OSError:
        return ""
