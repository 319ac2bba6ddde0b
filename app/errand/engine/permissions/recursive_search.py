"""Finds files that look like secrets in the folders that a search would read; the look is bounded."""

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from errand.engine.core.file_names import is_secret, is_secret_name
from errand.engine.permissions.programs.options import Usage
from errand.engine.permissions.verdict import Finding, ask

# Programs that print what they find below a folder, and the flags by which they look into all files.
_SEARCHES = frozenset(("grep", "egrep", "fgrep", "rg"))
_LOOKS_EVERYWHERE = frozenset(("r", "recursive", "hidden", "unrestricted", "u"))
_INCLUDES, _EXCLUDES = ("include", "g", "glob", "iglob"), ("exclude", "exclude-dir")
# Installed packages and caches have no secrets of the user.
_SKIPPED = frozenset(
    {
        ".git",
        ".hg",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        "site-packages",
        ".tox",
        ".mypy_cache",
        ".ruff_cache",
    }
    | {".pytest_cache", ".next", ".gradle"}
)
# The upper folders are looked at first; a search through more files is not asked about for what lies deeper.
_MAX_NAMES = 2_500
_WILDCARDS = re.compile(r"[*?]+|\[[^\]]*\]")


def against_search(program: str, usage: Usage, folders: Sequence[str]) -> Iterator[Finding]:
    """Findings against a search; `folders` are those in which it may run."""
    if program not in _SEARCHES:
        return
    # grep keeps its pattern apart; for rg, `g` is a pattern of files.
    includes = _values(usage, _INCLUDES if program == "rg" else _INCLUDES[:1])
    patterns = [pattern for pattern in includes if not pattern.startswith("!")]
    excluded = [*_values(usage, _EXCLUDES), *(pattern[1:] for pattern in includes if pattern.startswith("!"))]
    if named := next(
        (pattern for pattern in patterns if is_secret(_WILDCARDS.sub("", pattern)) or is_secret(f"x{pattern}")), None
    ):
        yield ask("operand", f"it would search {named}, which looks like a secret", "high")
    if _LOOKS_EVERYWHERE.isdisjoint(usage.flags):
        return
    for path in usage.paths:
        for folder in folders:
            if secret := _secret_below(os.path.join(folder, path), patterns, excluded):
                yield ask("operand", f"it would search {secret}, which looks like a secret", "high")


def _values(usage: Usage, flags: Sequence[str]) -> list[str]:
    return [value for flag in flags if flag in usage.flags for value in usage.flags[flag].split("\n")]


def _secret_below(top: str, wanted: Sequence[str], excluded: Sequence[str]) -> str | None:
    left, waiting = _MAX_NAMES, deque([top])
    while waiting and left > 0:
        folder = waiting.popleft()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    left -= 1
                    name = entry.name
                    if _is_one_of(name, excluded):
                        continue
                    if is_secret_name(name) and (not wanted or _is_one_of(name, wanted)):
                        return os.path.relpath(entry.path, top)
                    if name not in _SKIPPED and entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return None


def _is_one_of(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern.rstrip("/").rpartition("/")[2]) for pattern in patterns)
