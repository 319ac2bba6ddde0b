"""`.gitignore` files: which paths a walk skips.

The files come from untrusted repositories. So their size and number of rules are bounded, and a match takes bounded
time: `fnmatch` never backtracks, unlike the regular expressions of the library pathspec.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from app.engine.tools.file_walk import match_parts
from app.regular_file import read_regular

_NAME = ".gitignore"
_LARGEST = 500_000
_MOST_RULES = 2_000
_LONGEST_RULE = 500
_TRAILING_BLANKS = re.compile(r"(?<!\\) +$")
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern without a slash matches a name in any folder (`name`), any other one matches the path (`parts`)."""

    is_negated: bool
    only_folders: bool
    name: re.Pattern[str] | None
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _IgnoreFile:
    """The rules of one file in reverse order, since the last match decides."""

    folder: str
    rules: tuple[_Rule, ...]

    def verdict(self, path: str, is_folder: bool) -> bool | None:
        """True to skip the path, False to keep it, None if no rule matches."""
        parts = path[len(self.folder) :].split(os.sep)
        for rule in self.rules:
            if rule.only_folders and not is_folder:
                continue
            if rule.name.match(parts[-1]) if rule.name is not None else match_parts(parts, rule.parts):
                return not rule.is_negated
        return None


class GitIgnore:
    """The rules for a walk from `root`: those of its repository above it, and those found on the way.

    An explicitly named folder is walked even if rules above it exclude it. Files tracked by git are skipped too, as in
    ripgrep. `has_left_out` is true if anything was skipped.
    """

    def __init__(self, root: Path) -> None:
        self.has_left_out = False
        files: tuple[_IgnoreFile, ...] = ()
        for folder in reversed(_repository_folders(root)):
            if _leaves_out(files, str(folder), is_folder=True):
                files = ()
            files = _with_own(files, str(folder))
        self._files = {str(root): files}

    def leaves_out(self, path: str, is_folder: bool) -> bool:
        """True to skip the path. Call it for a folder before its content."""
        found = _leaves_out(self._files_for(os.path.dirname(path)), path, is_folder)
        self.has_left_out |= found
        return found

    def _files_for(self, folder: str) -> tuple[_IgnoreFile, ...]:
        files = self._files.get(folder)
        if files is None:
            files = self._files[folder] = _with_own(self._files_for(os.path.dirname(folder)), folder)
        return files


def _repository_folders(root: Path) -> list[Path]:
    """The folder and its parents up to the root of its repository; outside of one only the folder."""
    above: list[Path] = []
    for folder in (root, *root.parents):
        above.append(folder)
        if os.path.lexists(folder / ".git"):
            return above
    return [root]


def _leaves_out(files: Iterable[_IgnoreFile], path: str, is_folder: bool) -> bool:
    verdicts = (file.verdict(path, is_folder) for file in files)
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _with_own(files: tuple[_IgnoreFile, ...], folder: str) -> tuple[_IgnoreFile, ...]:
    """The files with the folder's own one first: it takes precedence over those above it."""
    try:
        text = read_regular(Path(folder, _NAME), _LARGEST, follow_links=False).decode("utf-8-sig", "replace")
    except OSError:
        return files
    rules = tuple(_rules(text.replace("\r\n", "\n").split("\n")[:_MOST_RULES]))
    return (_IgnoreFile(os.path.join(folder, ""), rules[::-1]), *files)


def _rules(lines: Iterable[str]) -> Iterator[_Rule]:
    for line in lines:
        text = _TRAILING_BLANKS.sub("", line)
        if text.startswith("#") or len(text) > _LONGEST_RULE:
            continue
        is_negated = text.startswith("!")
        pattern = text.removeprefix("!").rstrip("/")
        if not pattern:
            continue
        parts = _as_glob(pattern).split("/")
        if len(parts) == 1:
            yield _Rule(is_negated, text.endswith("/"), re.compile(translate(parts[0])))
            continue
        if parts[-1] == "**":
            parts.append("*")  # matches the content, not the folder itself
        yield _Rule(is_negated, text.endswith("/"), None, tuple(parts[1:] if parts[0] == "" else parts))


def _as_glob(pattern: str) -> str:
    """Convert to the escapes and the negation of `fnmatch`."""
    plain = _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], pattern)
    return plain.replace("[^", "[!")
