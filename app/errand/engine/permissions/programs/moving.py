"""Programs that make, move, overwrite or delete the files that they name."""

from collections.abc import Iterator
from itertools import pairwise

MOVES_FILES = frozenset(
    {"cp", "mv", "ln", "install", "rm", "rmdir", "touch", "tee", "dd", "chmod", "chown", "chgrp", "less", "more", "vi"}
    | {"vim", "nano", "emacs", "zip", "truncate", "shred", "sed", "awk", "mkdir", "split", "rsync", "source", "."}
    | {"unlink"}
)
# Those of them that change no file which they name as an operand.
READS_FILES = frozenset(("source", ".", "less", "more", "awk"))
# Those that delete whatever they name.
ERASES = frozenset(("rm", "unlink", "shred"))
DELETES = ERASES | {"rmdir", "mv"}
# Those that leave what is there as it is, or only add to it.
_ADDS = READS_FILES | {"touch", "mkdir", "ln", "chmod", "chown", "chgrp"}
_OVERWRITES = (MOVES_FILES | DELETES) - _ADDS
_OF_GIT = frozenset(
    ("rm", "mv", "checkout", "restore", "reset", "clean", "stash", "switch", "apply", "rebase", "merge")
)


def words_that_may_change(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the words that may name a file which the command writes."""
    if words[0] in MOVES_FILES or words[:2] == ("git", "mv"):
        yield from (word for word in words[1:] if not word.startswith("-"))
    if words[0] == "git":
        return  # its flags take revisions and texts
    for before, word in pairwise(words):
        flag, _, value = word.partition("=")
        if flag.startswith("-") and value:
            yield value
        elif before.startswith("-") and not word.startswith("-"):
            yield word


def deletes_extra(words: tuple[str, ...]) -> bool:
    """Return True for a copy that deletes what only its target has."""
    return words[0] == "rsync" and any(word.startswith("--del") for word in words)


def overwrites(program: str, git_command: str = "") -> bool:
    """Return True for a program known to delete files, or to replace what they hold."""
    return git_command in _OF_GIT if program == "git" else program in _OVERWRITES
