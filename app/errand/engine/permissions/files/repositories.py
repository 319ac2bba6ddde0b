"""Finds git repositories in what a command deletes: no checkpoint keeps their history."""

import os
import re
from collections import deque
from collections.abc import Iterator
from glob import iglob
from itertools import islice

_PATTERN = re.compile(r"[*?\[{]")
_ALTERNATIVES = re.compile(r"\{[^{}]*\}")
# Those nearest to the top are looked at first.
_MAX_MATCHES, _MAX_FOLDERS = 1_000, 5_000
_OF_BARE = frozenset(("HEAD", "objects", "refs"))


def holds_repository(path: str) -> bool:
    """Return True for a repository, a part of one, a folder with one at any depth, and a pattern that may match one."""
    names = os.path.normpath(path).split("/")
    if any(name == ".git" or (name.startswith(".") and _PATTERN.search(name)) for name in names):
        return True
    if os.path.lexists(path) or not _PATTERN.search(path):
        return _is_in(path)
    return any(map(_is_in, islice(iglob(_ALTERNATIVES.sub("*", path)), _MAX_MATCHES)))


def _is_in(path: str) -> bool:
    return os.path.exists(os.path.join(path, ".git")) or any(islice(_looks(path), _MAX_FOLDERS))


def _looks(top: str) -> Iterator[bool]:
    """Yield for each folder, breadth first, whether it is a repository or holds the `.git` of one."""
    folders = deque([top])
    while folders:
        names = set[str]()
        try:
            with os.scandir(folders.popleft()) as entries:
                for entry in entries:
                    names.add(entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name == ".git":
                            yield True
                        folders.append(entry.path)
        except OSError:
            pass
        yield names >= _OF_BARE
